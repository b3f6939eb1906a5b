// RUN: ds-opt %s --ds-expand-gradients --verify-diagnostics

// Tests an op that has no derivative.
func.func @norm(%x: tensor<3xf32>) -> tensor<3xf32> {
  // expected-error @+1 {{has no gradient, and a trainable parameter depends on it; freeze the parameters above it}}
  %y = train.block_sum_squares %x : (tensor<3xf32>) -> tensor<1xf64>
  %g = train.gradient %y, %x : (tensor<1xf64>, tensor<3xf32>) -> tensor<3xf32>
  return %g : tensor<3xf32>
}
