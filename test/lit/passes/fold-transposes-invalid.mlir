// This pass has no error of its own; here is what it must leave alone.
// RUN: ds-opt %s --ds-fold-transposes | FileCheck %s

// Tests that a permutation that keeps the last dimension last stays: no flag says it.
// CHECK-LABEL: func.func @heads
// CHECK-NEXT:  %[[T:.*]] = train.transpose %arg1 by [1, 0, 2]
// CHECK-NEXT:  train.matmul %arg0, %[[T]] : (tensor<4x2x3xf32>, tensor<4x3x5xf32>)
func.func @heads(%x: tensor<4x2x3xf32>, %w: tensor<3x4x5xf32>) -> tensor<4x2x5xf32> {
  %t = train.transpose %w by [1, 0, 2] : (tensor<3x4x5xf32>) -> tensor<4x3x5xf32>
  %y = train.matmul %x, %t : (tensor<4x2x3xf32>, tensor<4x3x5xf32>) -> tensor<4x2x5xf32>
  return %y : tensor<4x2x5xf32>
}

// Tests that a reversal stays: its last dimension comes from the front, not from next to it.
// CHECK-LABEL: func.func @reversed
// CHECK-NEXT:  %[[T:.*]] = train.transpose %arg1 by [2, 1, 0]
// CHECK-NEXT:  train.matmul %arg0, %[[T]] : (tensor<4x2x3xf32>, tensor<4x3x5xf32>)
func.func @reversed(%x: tensor<4x2x3xf32>, %w: tensor<5x3x4xf32>) -> tensor<4x2x5xf32> {
  %t = train.transpose %w by [2, 1, 0] : (tensor<5x3x4xf32>) -> tensor<4x3x5xf32>
  %y = train.matmul %x, %t : (tensor<4x2x3xf32>, tensor<4x3x5xf32>) -> tensor<4x2x5xf32>
  return %y : tensor<4x2x5xf32>
}

// Tests that a reshape between transpose and product hides the transpose.
// CHECK-LABEL: func.func @reshape
// CHECK-NEXT:  train.transpose
// CHECK-NEXT:  train.reshape
// CHECK-NEXT:  train.matmul %{{.*}}, %{{.*}} : (tensor<2x4xf32>, tensor<4x3xf32>)
func.func @reshape(%x: tensor<2x4xf32>, %w: tensor<3x4xf32>) -> tensor<2x3xf32> {
  %t = train.transpose %w by [1, 0] : (tensor<3x4xf32>) -> tensor<4x3xf32>
  %r = train.reshape %t to [4, 3] : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %y = train.matmul %x, %r : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}
