// This pass has no error of its own; here is what it must leave alone.
// RUN: ds-opt %s --ds-fuse-bias-gradients | FileCheck %s
// CHECK-NOT: linear_weight_grad

// Tests a sum of another tensor, over columns, over some rows, and of one that is rounded where the product is not.
func.func @sums(%x: tensor<12x8xbf16>, %dy: tensor<12x4xbf16>, %z: tensor<12x4xbf16>) -> (tensor<8x4xf32>, tensor<4xf32>, tensor<12xf32>, tensor<3x4xf32>, tensor<4xbf16>) {
  %w = train.matmul %x transposed, %dy {wide} : (tensor<12x8xbf16>, tensor<12x4xbf16>) -> tensor<8x4xf32>
  %0 = train.reduce_sum %z over [0] {wide} : (tensor<12x4xbf16>) -> tensor<4xf32>
  %1 = train.reduce_sum %dy over [1] {wide} : (tensor<12x4xbf16>) -> tensor<12xf32>
  %r = train.reshape %dy to [3, 4, 4] : (tensor<12x4xbf16>) -> tensor<3x4x4xbf16>
  %2 = train.reduce_sum %r over [1] {wide} : (tensor<3x4x4xbf16>) -> tensor<3x4xf32>
  %3 = train.reduce_sum %dy over [0] : (tensor<12x4xbf16>) -> tensor<4xbf16>
  return %w, %0, %1, %2, %3 : tensor<8x4xf32>, tensor<4xf32>, tensor<12xf32>, tensor<3x4xf32>, tensor<4xbf16>
}

// Tests a product for the layer's input, a batch of products, and an input that is made after the sum, whose reader would come first.
func.func @products(%w: tensor<8x4xf32>, %x: tensor<2x6x8xf32>, %dy: tensor<2x6x4xf32>, %s: tensor<4x4xf32>)
    -> (tensor<12x8xf32>, tensor<2x8x4xf32>, tensor<4xf32>) {
  %m = train.reshape %dy to [12, 4] : (tensor<2x6x4xf32>) -> tensor<12x4xf32>
  %0 = train.matmul %m, %w transposed : (tensor<12x4xf32>, tensor<8x4xf32>) -> tensor<12x8xf32>
  %1 = train.matmul %x transposed, %dy : (tensor<2x6x8xf32>, tensor<2x6x4xf32>) -> tensor<2x8x4xf32>
  %b = train.reduce_sum %dy over [0, 1] : (tensor<2x6x4xf32>) -> tensor<4xf32>
  return %0, %1, %b : tensor<12x8xf32>, tensor<2x8x4xf32>, tensor<4xf32>
}
func.func @late(%x: tensor<12x8xf32>, %dy: tensor<12x4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>) {
  %b = train.reduce_sum %dy over [0] : (tensor<12x4xf32>) -> tensor<4xf32>
  %c = train.neg %b : (tensor<4xf32>) -> tensor<4xf32>
  %l = train.exp %x : (tensor<12x8xf32>) -> tensor<12x8xf32>
  %w = train.matmul %l transposed, %dy : (tensor<12x8xf32>, tensor<12x4xf32>) -> tensor<8x4xf32>
  return %w, %c : tensor<8x4xf32>, tensor<4xf32>
}
