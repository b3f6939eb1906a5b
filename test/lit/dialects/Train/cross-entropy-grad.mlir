// RUN: ds-opt %s | ds-opt | FileCheck %s

// CHECK-LABEL: func.func @cross_entropy_grad
func.func @cross_entropy_grad(%x: tensor<3x5xf32>, %l: tensor<3xi64>, %lse: tensor<3xf32>, %g: tensor<f32>) -> tensor<3x5xf32> {
  // CHECK: train.cross_entropy_grad mean %{{.*}} ignore -100 : (tensor<3x5xf32>, tensor<3xi64>, tensor<3xf32>, tensor<f32>) -> tensor<3x5xf32>
  %0 = train.cross_entropy_grad mean %x, %l, %lse, %g ignore -100 : (tensor<3x5xf32>, tensor<3xi64>, tensor<3xf32>, tensor<f32>) -> tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
}
