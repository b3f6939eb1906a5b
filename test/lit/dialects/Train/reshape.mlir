// RUN: ds-opt %s | ds-opt | FileCheck %s
// RUN: ds-opt %s --canonicalize | FileCheck %s --check-prefix=FOLD

// Tests reshapes to a matrix, to a scalar and from an empty tensor.
// CHECK-LABEL: func.func @reshapes
func.func @reshapes(%x: tensor<2x3x4xf32>, %s: tensor<1x1xi64>, %e: tensor<0x3xf32>) -> tensor<6x4xf32> {
  // CHECK: train.reshape %{{.*}} to [6, 4] : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %0 = train.reshape %x to [6, 4] : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  // CHECK: train.reshape %{{.*}} to [] : (tensor<1x1xi64>) -> tensor<i64>
  %1 = train.reshape %s to [] : (tensor<1x1xi64>) -> tensor<i64>
  // CHECK: train.reshape %{{.*}} to [5, 0] : (tensor<0x3xf32>) -> tensor<5x0xf32>
  %2 = train.reshape %e to [5, 0] : (tensor<0x3xf32>) -> tensor<5x0xf32>
  return %0 : tensor<6x4xf32>
}

// Tests that a reshape of a reshape is one, and none where the shape comes back.
// FOLD-LABEL: func.func @fold_twice
// FOLD-SAME:    (%[[X:.*]]: tensor<2x3xf32>)
func.func @fold_twice(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3x2xf32>) {
  %0 = train.reshape %x to [6] : (tensor<2x3xf32>) -> tensor<6xf32>
  %1 = train.reshape %0 to [2, 3] : (tensor<6xf32>) -> tensor<2x3xf32>
  // FOLD-NEXT: %[[Y:.*]] = train.reshape %[[X]] to [3, 2]
  %2 = train.reshape %0 to [3, 2] : (tensor<6xf32>) -> tensor<3x2xf32>
  // FOLD-NEXT: return %[[X]], %[[Y]]
  return %1, %2 : tensor<2x3xf32>, tensor<3x2xf32>
}

// Tests that a constant is reshaped at once.
// FOLD-LABEL: func.func @fold_constant
func.func @fold_constant() -> tensor<2x1xi64> {
  // FOLD-NEXT: train.constant dense<{{\[\[}}1], [2]]> : tensor<2x1xi64>
  // FOLD-NOT:  train.reshape
  %0 = train.constant dense<[1, 2]> : tensor<2xi64>
  %1 = train.reshape %0 to [2, 1] : (tensor<2xi64>) -> tensor<2x1xi64>
  return %1 : tensor<2x1xi64>
}
