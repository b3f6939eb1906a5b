// RUN: ds-opt %s | ds-opt | FileCheck %s

// Tests that condition and both branches broadcast together.
// CHECK-LABEL: func.func @select_elementwise_c3
func.func @select_elementwise_c3(%c: tensor<4x1xi1>, %a: tensor<3xf32>, %b: tensor<f32>) -> tensor<4x3xf32> {
  // CHECK: train.select %{{.*}}, %{{.*}}, %{{.*}} : (tensor<4x1xi1>, tensor<3xf32>, tensor<f32>) -> tensor<4x3xf32>
  %0 = train.select %c, %a, %b : (tensor<4x1xi1>, tensor<3xf32>, tensor<f32>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}
