// RUN: ds-opt %s | ds-opt | FileCheck %s

// Tests the reduction, the ignored label and the classes, of logits in 16 bits as well.
// CHECK-LABEL: func.func @cross_entropy_with_grad
func.func @cross_entropy_with_grad(%x: tensor<3x5xf32>, %y: tensor<3x8xbf16>, %l: tensor<3xi64>, %g: tensor<f32>) {
  // CHECK: train.cross_entropy_with_grad mean %arg0, %arg2, %arg3 ignore -100 : (tensor<3x5xf32>, tensor<3xi64>, tensor<f32>) -> (tensor<f32>, tensor<3xf32>, tensor<3x5xf32>)
  %0:3 = train.cross_entropy_with_grad mean %x, %l, %g ignore -100 : (tensor<3x5xf32>, tensor<3xi64>, tensor<f32>) -> (tensor<f32>, tensor<3xf32>, tensor<3x5xf32>)
  // CHECK: train.cross_entropy_with_grad sum %arg1, %arg2, %arg3 ignore 0 classes 7 : (tensor<3x8xbf16>, tensor<3xi64>, tensor<f32>) -> (tensor<f32>, tensor<3xf32>, tensor<3x8xbf16>)
  %1:3 = train.cross_entropy_with_grad sum %y, %l, %g ignore 0 classes 7 : (tensor<3x8xbf16>, tensor<3xi64>, tensor<f32>) -> (tensor<f32>, tensor<3xf32>, tensor<3x8xbf16>)
  return
}
