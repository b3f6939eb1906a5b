// RUN: ds-opt %s | ds-opt | FileCheck %s

// Tests a sum in float32, and one that is rounded to 16 bits as well.
// CHECK-LABEL: func.func @layer_norm_of_sum
func.func @layer_norm_of_sum(%x: tensor<2x3x4xf32>, %h: tensor<2x3x4xbf16>, %g: tensor<4xf32>) {
  // CHECK: train.layer_norm_of_sum %arg0, %arg2, %arg2, %arg0 epsilon 1.000000e-05 : (tensor<2x3x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3x4xf32>)
  %0:4 = train.layer_norm_of_sum %x, %g, %g, %x epsilon 1.0e-5 : (tensor<2x3x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3x4xf32>)
  // CHECK: train.layer_norm_of_sum %arg1, %arg2, %arg2, %arg0 epsilon 1.000000e-05 : (tensor<2x3x4xbf16>, tensor<4xf32>, tensor<4xf32>, tensor<2x3x4xf32>) -> (tensor<2x3x4xbf16>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3x4xf32>, tensor<2x3x4xbf16>)
  %1:5 = train.layer_norm_of_sum %h, %g, %g, %x epsilon 1.0e-5 : (tensor<2x3x4xbf16>, tensor<4xf32>, tensor<4xf32>, tensor<2x3x4xf32>) -> (tensor<2x3x4xbf16>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3x4xf32>, tensor<2x3x4xbf16>)
  return
}
