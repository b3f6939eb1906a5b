// RUN: ds-opt %s | ds-opt | FileCheck %s

// CHECK-LABEL: func.func @rms_norm_of_sum
func.func @rms_norm_of_sum(%x: tensor<2x4xf32>, %g: tensor<4xf32>) {
  // CHECK: train.rms_norm_of_sum %arg0, %arg1, %arg0 epsilon 1.000000e-05 : (tensor<2x4xf32>, tensor<4xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>, tensor<2x4xf32>)
  %0:3 = train.rms_norm_of_sum %x, %g, %x epsilon 1.0e-5 : (tensor<2x4xf32>, tensor<4xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>, tensor<2x4xf32>)
  return
}
