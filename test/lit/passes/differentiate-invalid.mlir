// RUN: ds-opt %s --ds-differentiate --split-input-file --verify-diagnostics

// expected-error @+1 {{needs a function @forward of one block that returns the loss}}
module {
}

// -----

// expected-error @+1 {{needs a function @forward of one block that returns the loss}}
module {
  func.func private @forward() -> tensor<f32>
}

// -----

// expected-error @+1 {{returns 'tensor<3xf32>'; the loss must be a scalar of f32 or f64}}
func.func @forward(%x: tensor<3xf32>) -> tensor<3xf32> {
  return %x : tensor<3xf32>
}

// -----

// expected-error @+1 {{returns 'i32'; the loss must be a scalar of f32 or f64}}
func.func @forward(%x: i32) -> i32 {
  return %x : i32
}

// -----

// expected-error @+1 {{the loss depends on no trainable parameter; see --trainable and --frozen}}
func.func @forward(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}

// -----

train.variable parameter @w : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  %w = train.read @w : tensor<f32>
  // expected-error @+1 {{op has no gradient, and a trainable parameter depends on it; freeze the parameters above it}}
  %0 = train.fused %w {
  ^bb0(%a: tensor<f32>):
    %1 = train.neg %a : (tensor<f32>) -> tensor<f32>
    train.yield %1 : tensor<f32>
  } : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

train.variable parameter @w : tensor<2x3xf32> from #train.fill<0.0> {trainable}
func.func @forward(%x: tensor<3xf32>) -> tensor<f32> {
  %w = train.read @w : tensor<2x3xf32>
  // expected-error @+1 {{op has no gradient through its mean or rstd}}
  %y, %mean, %rstd = train.layer_norm %w, %x, %x epsilon 1.0e-5 : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>)
  %0 = train.reduce_sum %mean over [0] : (tensor<2xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

train.variable parameter @w : tensor<2x3xf32> from #train.fill<0.0> {trainable}
func.func @forward(%l: tensor<2xi64>) -> tensor<f32> {
  %w = train.read @w : tensor<2x3xf32>
  // expected-error @+1 {{op has no gradient through its log-sum-exp}}
  %loss, %lse = train.cross_entropy sum %w, %l ignore -1 : (tensor<2x3xf32>, tensor<2xi64>) -> (tensor<f32>, tensor<2xf32>)
  %0 = train.reduce_sum %lse over [0] : (tensor<2xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// expected-error @+1 {{@lr has a name that the training step needs for itself; rename it}}
train.variable parameter @lr : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  %w = train.read @lr : tensor<f32>
  return %w : tensor<f32>
}

// -----

// attention_c4
train.variable parameter @mask : tensor<3x5xf32> from #train.fill<0.0> {trainable}
func.func @forward(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>) -> tensor<f32> {
  %m = train.read @mask : tensor<3x5xf32>
  // expected-error @+1 {{has no gradient for its mask, which a trainable parameter reaches; leave out ds-regroup-attention}}
  %0:2 = train.attention %q, %k, %k mask %m scale 1.0 : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>, tensor<3x5xf32>) -> (tensor<2x4x3x8xf32>, tensor<2x4x3xf32>)
  %1 = train.reduce_sum %0#0 over [0, 1, 2, 3] : (tensor<2x4x3x8xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

// packed_attention_c4
train.variable parameter @mask : tensor<3x3xf32> from #train.fill<0.0> {trainable}
func.func @forward(%x: tensor<2x3x8x8xf32>) -> tensor<f32> {
  %m = train.read @mask : tensor<3x3xf32>
  // expected-error @+1 {{has no gradient for its mask, which a trainable parameter reaches; leave out ds-regroup-attention}}
  %0:2 = train.packed_attention %x heads 4 mask %m scale 1.0 : (tensor<2x3x8x8xf32>, tensor<3x3xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x4x3xf32>)
  %1 = train.reduce_sum %0#0 over [0, 1, 2, 3] : (tensor<2x3x4x8xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

train.variable parameter @q : tensor<1x1x2x2xf32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  %q = train.read @q : tensor<1x1x2x2xf32>
  // expected-error @+1 {{op has no gradient through its log sums of exponentials}}
  %0:2 = train.attention %q, %q, %q scale 1.0 : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> (tensor<1x1x2x2xf32>, tensor<1x1x2xf32>)
  %1 = train.reduce_sum %0#1 over [0, 1, 2] : (tensor<1x1x2xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

train.variable parameter @w : tensor<5xf32> from #train.fill<0.0> {trainable}
func.func @forward(%i: tensor<2xi64>, %u: tensor<2xf32>) -> tensor<f32> {
  %w = train.read @w : tensor<5xf32>
  // expected-error @+1 {{op with reduction max has no gradient; replacing and adding have one, as has a maximum or minimum along a dimension of torch.where(mask, x, fill)}}
  %0 = train.scatter_elements max %w, %i, %u along 0 : (tensor<5xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<5xf32>
  %1 = train.reduce_sum %0 over [0] : (tensor<5xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}
