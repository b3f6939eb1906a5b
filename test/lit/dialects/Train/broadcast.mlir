// RUN: ds-opt %s | ds-opt | FileCheck %s
// RUN: ds-opt %s --canonicalize | FileCheck %s --check-prefix=FOLD

// Tests repeats along new and along unit dimensions.
// CHECK-LABEL: func.func @broadcasts
func.func @broadcasts(%x: tensor<2x1xf32>, %s: tensor<i64>) -> tensor<4x2x3xf32> {
  // CHECK: train.broadcast %{{.*}} to [4, 2, 3] : (tensor<2x1xf32>) -> tensor<4x2x3xf32>
  %0 = train.broadcast %x to [4, 2, 3] : (tensor<2x1xf32>) -> tensor<4x2x3xf32>
  // CHECK: train.broadcast %{{.*}} to [0] : (tensor<i64>) -> tensor<0xi64>
  %1 = train.broadcast %s to [0] : (tensor<i64>) -> tensor<0xi64>
  return %0 : tensor<4x2x3xf32>
}

// Tests that a broadcast that repeats nothing goes.
// FOLD-LABEL: func.func @fold_same
// FOLD-SAME:    (%[[X:.*]]: tensor<2x1xf32>)
// FOLD-NEXT:    return %[[X]]
func.func @fold_same(%x: tensor<2x1xf32>) -> tensor<2x1xf32> {
  %0 = train.broadcast %x to [2, 1] : (tensor<2x1xf32>) -> tensor<2x1xf32>
  return %0 : tensor<2x1xf32>
}
