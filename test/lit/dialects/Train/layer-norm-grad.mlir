// RUN: ds-opt %s | ds-opt | FileCheck %s

// CHECK-LABEL: func.func @layer_norm_grad
func.func @layer_norm_grad(%d: tensor<2x4xf32>, %x: tensor<2x4xf32>, %g: tensor<4xf32>, %m: tensor<2xf32>) -> tensor<4xf32> {
  // CHECK: train.layer_norm_grad %{{.*}} : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<4xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>)
  %0:3 = train.layer_norm_grad %d, %x, %g, %m, %m : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<4xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>)
  // CHECK: train.layer_norm_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %arg1 :
  %1:3 = train.layer_norm_grad %d, %x, %g, %m, %m, %x : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<4xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#1 : tensor<4xf32>
}
