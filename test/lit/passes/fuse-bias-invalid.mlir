// This pass has no error of its own; here is what it must leave alone.
// RUN: ds-opt %s --ds-fuse-bias | FileCheck %s

// Tests a product that something else reads, and one that is added to itself.
// CHECK-LABEL: func.func @two_readers
// CHECK:       train.add
// CHECK:       train.add
func.func @two_readers(%x: tensor<2x3xf32>, %w: tensor<3x2xf32>, %b: tensor<2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %0 = train.matmul %x, %w : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  %1 = train.add %0, %b : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
  %2 = train.add %0, %0 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %1, %2 : tensor<2x2xf32>, tensor<2x2xf32>
}

// Tests that a matrix, a column and a broadcast scalar are no bias.
// CHECK-LABEL: func.func @no_vector
// CHECK-NOT:   bias
// CHECK:       return
func.func @no_vector(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>, %m: tensor<2x4xf32>, %c: tensor<2x1xf32>, %s: tensor<1xf32>)
    -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  %0 = train.matmul %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %1 = train.add %0, %m : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = train.matmul %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %3 = train.add %2, %c : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  %4 = train.matmul %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %5 = train.add %4, %s : (tensor<2x4xf32>, tensor<1xf32>) -> tensor<2x4xf32>
  return %1, %3, %5 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}

// Tests that a product with a bias takes no second one: it would round otherwise.
// CHECK-LABEL: func.func @two_biases
// CHECK-NEXT:  %[[P:.*]] = train.matmul %arg0, %arg1 bias %arg2
// CHECK-NEXT:  train.add %[[P]], %arg2
func.func @two_biases(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>, %b: tensor<4xf32>) -> tensor<2x4xf32> {
  %0 = train.matmul %x, %w bias %b : (tensor<2x3xf32>, tensor<3x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %1 = train.add %0, %b : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}

// Tests a sum that broadcasts the product.
// CHECK-LABEL: func.func @wider_sum
// CHECK:       train.add
func.func @wider_sum(%x: tensor<1x3xf32>, %w: tensor<3x4xf32>, %b: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = train.matmul %x, %w : (tensor<1x3xf32>, tensor<3x4xf32>) -> tensor<1x4xf32>
  %1 = train.add %0, %b : (tensor<1x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}
