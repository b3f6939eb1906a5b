// RUN: ds-opt %s --ds-verify-simple-form --split-input-file --verify-diagnostics

// expected-error @+1 {{has neither @forward nor @microbatch, @update and @evaluate; import makes the first}}
module {
  func.func @microbatch(%x: tensor<f32>) {
    return
  }
}

// -----

// expected-error @+1 {{has both @forward and @microbatch, @update and @evaluate; import makes the first}}
module {
  func.func @forward(%x: tensor<f32>) -> tensor<f32> {
    return %x : tensor<f32>
  }
  func.func @microbatch(%x: tensor<f32>) {
    return
  }
  func.func @update() {
    return
  }
  func.func @evaluate(%x: tensor<f32>) {
    return
  }
}

// -----

// expected-error @+1 {{holds a training algorithm; ds-split-algorithm should have split it}}
func.func @forward(%x: tensor<f32>) attributes {train.algorithm} {
  return
}

// -----

func.func @forward(%x: tensor<f32>) -> tensor<f32> {
  %y = train.mul %x, %x : (tensor<f32>, tensor<f32>) -> tensor<f32>
  // expected-error @+1 {{op is left over; ds-expand-gradients should have replaced it}}
  %g = train.gradient %y, %x : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %g : tensor<f32>
}

// -----

func.func @forward(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{op is not allowed in a training step, which holds train ops only}}
  %y = func.call @forward(%x) : (tensor<f32>) -> tensor<f32>
  return %y : tensor<f32>
}
