// RUN: ds-opt %s | ds-opt | FileCheck %s

// Tests that the last dimension becomes k in both results.
// CHECK-LABEL: func.func @top_k
func.func @top_k(%x: tensor<2x7xf32>) -> tensor<2x3xi64> {
  // CHECK: train.top_k 3 of %{{.*}} : (tensor<2x7xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>)
  %0:2 = train.top_k 3 of %x : (tensor<2x7xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>)
  // CHECK: train.top_k smallest 7 of %{{.*}}
  %1:2 = train.top_k smallest 7 of %x : (tensor<2x7xf32>) -> (tensor<2x7xf32>, tensor<2x7xi64>)
  return %0#1 : tensor<2x3xi64>
}
