// RUN: ds-opt %s | ds-opt | FileCheck %s

// Tests the places of a pool's window: (7 + 1 + 1 - 3) / 2 + 1 = 4.
// CHECK-LABEL: func.func @pool
func.func @pool(%x: tensor<2x3x7x7xf32>) -> tensor<2x3x4x4xf32> {
  // CHECK: train.max_pool %{{.*}} window [3, 3] strides [2, 2] dilations [1, 1] low [1, 1] high [1, 1]
  // CHECK-SAME: -> tensor<2x3x4x4xf32>
  %y = train.max_pool %x window [3, 3] strides [2, 2] dilations [1, 1] low [1, 1] high [1, 1]
      : (tensor<2x3x7x7xf32>) -> tensor<2x3x4x4xf32>
  // CHECK: train.max_pool_grad %{{.*}}, %{{.*}} window [3, 3]
  %0 = train.max_pool_grad %y, %x window [3, 3] strides [2, 2] dilations [1, 1] low [1, 1] high [1, 1]
      : (tensor<2x3x4x4xf32>, tensor<2x3x7x7xf32>) -> tensor<2x3x7x7xf32>
  // CHECK: train.average_pool %{{.*}} window [3, 3]
  %z = train.average_pool %x window [3, 3] strides [2, 2] dilations [1, 1] low [1, 1] high [1, 1]
      : (tensor<2x3x7x7xf32>) -> tensor<2x3x4x4xf32>
  // CHECK: train.average_pool_grad %{{.*}} window [3, 3] {{.*}} into [2, 3, 7, 7]
  %1 = train.average_pool_grad %z window [3, 3] strides [2, 2] dilations [1, 1] low [1, 1] high [1, 1] into [2, 3, 7, 7]
      : (tensor<2x3x4x4xf32>) -> tensor<2x3x7x7xf32>
  return %y : tensor<2x3x4x4xf32>
}
