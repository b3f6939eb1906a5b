// RUN: ds-opt %s | ds-opt | FileCheck %s
// RUN: ds-opt %s --canonicalize | FileCheck %s --check-prefix=FOLD

// Tests a window, a stride that ends on the last element, and a slice of nothing.
// CHECK-LABEL: func.func @slices
func.func @slices(%x: tensor<7x4xf32>) -> tensor<3x2xf32> {
  // CHECK: train.slice %{{.*}} from [2, 1] size [3, 2] step [1, 1] : (tensor<7x4xf32>) -> tensor<3x2xf32>
  %0 = train.slice %x from [2, 1] size [3, 2] step [1, 1] : (tensor<7x4xf32>) -> tensor<3x2xf32>
  // 0, 3, 6 of 7
  // CHECK: train.slice %{{.*}} from [0, 0] size [3, 4] step [3, 1]
  %1 = train.slice %x from [0, 0] size [3, 4] step [3, 1] : (tensor<7x4xf32>) -> tensor<3x4xf32>
  // CHECK: train.slice %{{.*}} from [7, 0] size [0, 4] step [1, 1]
  %2 = train.slice %x from [7, 0] size [0, 4] step [1, 1] : (tensor<7x4xf32>) -> tensor<0x4xf32>
  return %0 : tensor<3x2xf32>
}

// Tests that a slice of everything goes.
// FOLD-LABEL: func.func @fold_whole
// FOLD-SAME:    (%[[X:.*]]: tensor<7xf32>)
// FOLD-NEXT:    return %[[X]]
func.func @fold_whole(%x: tensor<7xf32>) -> tensor<7xf32> {
  %0 = train.slice %x from [0] size [7] step [1] : (tensor<7xf32>) -> tensor<7xf32>
  return %0 : tensor<7xf32>
}
