// RUN: ds-opt %s --ds-split-algorithm --split-input-file --verify-diagnostics

// expected-error @+1 {{the training algorithm differentiates nothing; it needs a Gradient node}}
func.func @forward(%x: tensor<f32>) -> tensor<f32> attributes {train.algorithm} {
  return %x : tensor<f32>
}

// -----

train.variable parameter @w : tensor<3xf32> from #train.fill<0.0> {trainable}
func.func @forward(%x: tensor<f32>) -> tensor<f32> attributes {train.algorithm} {
  %w = train.read @w : tensor<3xf32>
  %y = train.mul %w, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  // expected-error @+1 {{the training algorithm differentiates 'tensor<3xf32>'; it must be a scalar, the loss}}
  %g = train.gradient %y, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  train.store %g into @w : tensor<3xf32>
  return %x : tensor<f32>
}

// -----

// expected-error @+1 {{returns 'tensor<3xf32>'; the loss must be a scalar of f32 or f64}}
func.func @forward(%x: tensor<3xf32>) -> tensor<3xf32> attributes {train.algorithm} {
  return %x : tensor<3xf32>
}
