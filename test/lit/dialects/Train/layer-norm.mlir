// RUN: ds-opt %s | ds-opt | FileCheck %s

// Tests that mean and rstd have one element a row, over one and over two trailing dimensions.
// CHECK-LABEL: func.func @layer_norm_c2
func.func @layer_norm_c2(%x: tensor<2x3x4xf32>, %g: tensor<4xf32>, %h: tensor<3x4xf32>) -> tensor<2x3x4xf32> {
  // CHECK: train.layer_norm %{{.*}}, %{{.*}}, %{{.*}} epsilon 1.000000e-05 : (tensor<2x3x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  %0:3 = train.layer_norm %x, %g, %g epsilon 1.0e-5
      : (tensor<2x3x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  // CHECK: train.layer_norm {{.*}} -> (tensor<2x3x4xf32>, tensor<2xf32>, tensor<2xf32>)
  %1:3 = train.layer_norm %x, %h, %h epsilon 1.0e-5
      : (tensor<2x3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2xf32>, tensor<2xf32>)
  return %0#0 : tensor<2x3x4xf32>
}
