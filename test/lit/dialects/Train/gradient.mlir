// RUN: ds-opt %s | ds-opt | FileCheck %s

// CHECK-LABEL: func.func @gradient
func.func @gradient(%y: tensor<f32>, %x: tensor<3xf32>, %z: tensor<2xi64>) -> (tensor<3xf32>, tensor<f32>) {
  // CHECK: train.gradient %{{.*}}, %{{.*}}, %{{.*}} fixed %{{.*}} : (tensor<f32>, tensor<3xf32>, tensor<f32>, tensor<2xi64>) -> (tensor<3xf32>, tensor<f32>)
  %0:2 = train.gradient %y, %x, %y fixed %z : (tensor<f32>, tensor<3xf32>, tensor<f32>, tensor<2xi64>) -> (tensor<3xf32>, tensor<f32>)
  // CHECK: train.gradient %{{.*}}, %{{.*}} : (tensor<f32>, tensor<3xf32>) -> tensor<3xf32>
  %1 = train.gradient %y, %x : (tensor<f32>, tensor<3xf32>) -> tensor<3xf32>
  return %0#0, %0#1 : tensor<3xf32>, tensor<f32>
}
