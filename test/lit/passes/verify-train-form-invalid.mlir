// RUN: ds-opt %s --ds-verify-train-form --split-input-file --verify-diagnostics

// expected-error @+1 {{has no @update; ds-differentiate and ds-insert-optimizer make it}}
module {
  func.func @microbatch() {
    return
  }
}

// -----

func.func @microbatch(%x: tensor<f32>) {
  return
}
func.func @update() {
  return
}
// expected-error @+1 {{takes 'tensor<f64>', @microbatch 'tensor<f32>'}}
func.func @evaluate(%x: tensor<f64>) {
  return
}

// -----

func.func @microbatch() {
  return
}
// expected-error @+1 {{takes 'tensor<f32>'; it works on variables only}}
func.func @update(%x: tensor<f32>) {
  return
}
func.func @evaluate() {
  return
}

// -----

func.func @microbatch() {
  // expected-error @+1 {{op is not allowed in a training step, which holds train ops only}}
  call @evaluate() : () -> ()
  return
}
func.func @update() {
  return
}
func.func @evaluate() {
  return
}

// -----

func.func @microbatch() {
  return
}
// expected-error @+1 {{must have one block: a training step is straight-line code}}
func.func private @update()
func.func @evaluate() {
  return
}

// -----

// expected-error @+1 {{op is a gradient that @microbatch never writes}}
train.variable gradient @g : tensor<f32>
func.func @microbatch() {
  return
}
func.func @update() {
  return
}
func.func @evaluate() {
  return
}

// -----

train.variable parameter @w : tensor<f32> from #train.fill<0.0>
// expected-note @+1 {{the first}}
train.variable gradient @g of @w : tensor<f32>
// expected-error @+1 {{op is the second gradient of @w}}
train.variable gradient @h of @w : tensor<f32>
func.func @microbatch() {
  %0 = train.constant dense<1.0> : tensor<f32>
  train.accumulate %0 into @g : tensor<f32>
  train.accumulate %0 into @h : tensor<f32>
  return
}
func.func @update() {
  return
}
func.func @evaluate() {
  return
}
