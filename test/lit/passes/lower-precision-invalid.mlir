// RUN: ds-opt %s --ds-lower-precision --split-input-file --verify-diagnostics

// Tests an op that the table says nothing about: a gradient, which this pass must precede.
train.variable parameter @w : tensor<2x3xf32> from #train.fill<0.0> {trainable}
func.func @forward(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %w = train.read @w : tensor<2x3xf32>
  // expected-error @+1 {{has no row in the table of precisions, so it cannot be computed with 'bf16'}}
  %0 = train.softmax_grad %w, %x along 1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
