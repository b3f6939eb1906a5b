// This pass has no error of its own; here is what it must leave alone.
// RUN: ds-opt %s --ds-pad-vocabulary | FileCheck %s
// CHECK-NOT: train.pad

// Tests a number of classes that fits, logits that something else reads, a batch of products, logits that are no product's, and rows
// that a reshape cuts up.
func.func @fits(%x: tensor<4x8xf32>, %w: tensor<8x1000xf32>, %y: tensor<4xi64>) -> tensor<f32> {
  %0 = train.matmul %x, %w : (tensor<4x8xf32>, tensor<8x1000xf32>) -> tensor<4x1000xf32>
  %loss, %lse = train.cross_entropy mean %0, %y ignore -1 : (tensor<4x1000xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>)
  return %loss : tensor<f32>
}
func.func @two_readers(%x: tensor<4x8xf32>, %w: tensor<8x9xf32>, %y: tensor<4xi64>) -> (tensor<f32>, tensor<4x9xf32>) {
  %0 = train.matmul %x, %w : (tensor<4x8xf32>, tensor<8x9xf32>) -> tensor<4x9xf32>
  %loss, %lse = train.cross_entropy mean %0, %y ignore -1 : (tensor<4x9xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>)
  return %loss, %0 : tensor<f32>, tensor<4x9xf32>
}
func.func @batch(%x: tensor<2x2x8xf32>, %w: tensor<2x8x9xf32>, %y: tensor<4xi64>) -> tensor<f32> {
  %0 = train.matmul %x, %w : (tensor<2x2x8xf32>, tensor<2x8x9xf32>) -> tensor<2x2x9xf32>
  %1 = train.reshape %0 to [4, 9] : (tensor<2x2x9xf32>) -> tensor<4x9xf32>
  %loss, %lse = train.cross_entropy mean %1, %y ignore -1 : (tensor<4x9xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>)
  return %loss : tensor<f32>
}
func.func @no_product(%x: tensor<4x9xf32>, %y: tensor<4xi64>) -> tensor<f32> {
  %0 = train.neg %x : (tensor<4x9xf32>) -> tensor<4x9xf32>
  %loss, %lse = train.cross_entropy mean %0, %y ignore -1 : (tensor<4x9xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>)
  return %loss : tensor<f32>
}
func.func @cut(%x: tensor<4x8xf32>, %w: tensor<8x9xf32>, %y: tensor<12xi64>) -> tensor<f32> {
  %0 = train.matmul %x, %w : (tensor<4x8xf32>, tensor<8x9xf32>) -> tensor<4x9xf32>
  %1 = train.reshape %0 to [12, 3] : (tensor<4x9xf32>) -> tensor<12x3xf32>
  %loss, %lse = train.cross_entropy mean %1, %y ignore -1 : (tensor<12x3xf32>, tensor<12xi64>) -> (tensor<f32>, tensor<12xf32>)
  return %loss : tensor<f32>
}
