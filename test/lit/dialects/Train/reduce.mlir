// RUN: ds-opt %s | ds-opt | FileCheck %s

// Tests that reduced dimensions are gone from the result.
// CHECK-LABEL: func.func @reduces
func.func @reduces(%x: tensor<2x3x4xf32>) -> tensor<f32> {
  // CHECK: train.reduce_sum %{{.*}} over [0, 2] : (tensor<2x3x4xf32>) -> tensor<3xf32>
  %0 = train.reduce_sum %x over [0, 2] : (tensor<2x3x4xf32>) -> tensor<3xf32>
  // CHECK: train.reduce_mean %{{.*}} over [0] : (tensor<3xf32>) -> tensor<f32>
  %1 = train.reduce_mean %0 over [0] : (tensor<3xf32>) -> tensor<f32>
  // CHECK: train.reduce_max %{{.*}} over [] : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %2 = train.reduce_max %x over [] : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %1 : tensor<f32>
}
