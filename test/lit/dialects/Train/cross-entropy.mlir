// RUN: ds-opt %s | ds-opt | FileCheck %s

// Tests both reductions.
// CHECK-LABEL: func.func @cross_entropies
func.func @cross_entropies(%x: tensor<3x5xf32>, %l: tensor<3xi64>) -> tensor<f32> {
  // CHECK: train.cross_entropy mean %{{.*}}, %{{.*}} ignore -100 : (tensor<3x5xf32>, tensor<3xi64>) -> (tensor<f32>, tensor<3xf32>)
  %loss, %lse = train.cross_entropy mean %x, %l ignore -100 : (tensor<3x5xf32>, tensor<3xi64>) -> (tensor<f32>, tensor<3xf32>)
  // CHECK: train.cross_entropy sum %{{.*}}, %{{.*}} ignore 0
  %0, %1 = train.cross_entropy sum %x, %l ignore 0 : (tensor<3x5xf32>, tensor<3xi64>) -> (tensor<f32>, tensor<3xf32>)
  return %loss : tensor<f32>
}
