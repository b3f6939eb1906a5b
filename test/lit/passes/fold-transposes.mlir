// RUN: ds-opt %s --ds-fold-transposes | FileCheck %s

// Tests that a product reads a swapped operand in place.
// CHECK-LABEL: func.func @right
// CHECK-SAME:  (%[[X:.*]]: tensor<2x3xf32>, %[[W:.*]]: tensor<4x3xf32>)
// CHECK-NEXT:  train.matmul %[[X]], %[[W]] transposed : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
func.func @right(%x: tensor<2x3xf32>, %w: tensor<4x3xf32>) -> tensor<2x4xf32> {
  %t = train.transpose %w by [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>
  %y = train.matmul %x, %t : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// Tests that a flag that is set already is taken back.
// CHECK-LABEL: func.func @left_again
// CHECK-NEXT:  train.matmul %arg0, %arg1 : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
func.func @left_again(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>) -> tensor<2x4xf32> {
  %t = train.transpose %x by [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %y = train.matmul %t transposed, %w : (tensor<3x2xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// Tests that one transpose on both sides goes once both have left it.
// CHECK-LABEL: func.func @both
// CHECK-NEXT:  train.matmul %arg0 transposed, %arg0 transposed : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
// CHECK-NEXT:  return
func.func @both(%w: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %t = train.transpose %w by [1, 0] : (tensor<3x3xf32>) -> tensor<3x3xf32>
  %y = train.matmul %t, %t : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  return %y : tensor<3x3xf32>
}

// Tests that a transpose that something else reads stays for it.
// CHECK-LABEL: func.func @shared
// CHECK-NEXT:  %[[T:.*]] = train.transpose %arg1
// CHECK-NEXT:  train.matmul %arg0, %arg1 transposed
// CHECK-NEXT:  train.exp %[[T]]
func.func @shared(%x: tensor<2x3xf32>, %w: tensor<4x3xf32>) -> (tensor<2x4xf32>, tensor<3x4xf32>) {
  %t = train.transpose %w by [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>
  %y = train.matmul %x, %t : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %z = train.exp %t : (tensor<3x4xf32>) -> tensor<3x4xf32>
  return %y, %z : tensor<2x4xf32>, tensor<3x4xf32>
}

// Tests attention's keys: [0, 2, 3, 1] is [0, 2, 1, 3], which moves whole rows, and a swap.
// CHECK-LABEL: func.func @keys
// CHECK-NEXT:  %[[T:.*]] = train.transpose %arg1 by [0, 2, 1, 3] : (tensor<2x5x4x3xf32>) -> tensor<2x4x5x3xf32>
// CHECK-NEXT:  train.matmul %arg0, %[[T]] transposed : (tensor<2x4x6x3xf32>, tensor<2x4x5x3xf32>) -> tensor<2x4x6x5xf32>
func.func @keys(%q: tensor<2x4x6x3xf32>, %k: tensor<2x5x4x3xf32>) -> tensor<2x4x6x5xf32> {
  %t = train.transpose %k by [0, 2, 3, 1] : (tensor<2x5x4x3xf32>) -> tensor<2x4x3x5xf32>
  %y = train.matmul %q, %t : (tensor<2x4x6x3xf32>, tensor<2x4x3x5xf32>) -> tensor<2x4x6x5xf32>
  return %y : tensor<2x4x6x5xf32>
}

// Tests that the bias keeps its place.
// CHECK-LABEL: func.func @bias
// CHECK-NEXT:  train.matmul %arg0 transposed, %arg1 bias %arg2
func.func @bias(%x: tensor<3x2xf32>, %w: tensor<3x4xf32>, %b: tensor<4xf32>) -> tensor<2x4xf32> {
  %t = train.transpose %x by [1, 0] : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %y = train.matmul %t, %w bias %b : (tensor<2x3xf32>, tensor<3x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
