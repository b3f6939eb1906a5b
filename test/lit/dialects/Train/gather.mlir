// RUN: ds-opt %s | ds-opt | FileCheck %s

// Tests that the indices' shape stands where the axis stood.
// CHECK-LABEL: func.func @gather_c2
func.func @gather_c2(%data: tensor<5x6x7xf32>, %i: tensor<2x3xi64>, %s: tensor<i32>) -> tensor<5x2x3x7xf32> {
  // CHECK: train.gather %{{.*}}, %{{.*}} along 1 : (tensor<5x6x7xf32>, tensor<2x3xi64>) -> tensor<5x2x3x7xf32>
  %0 = train.gather %data, %i along 1 : (tensor<5x6x7xf32>, tensor<2x3xi64>) -> tensor<5x2x3x7xf32>
  // CHECK: train.gather %{{.*}}, %{{.*}} along 0 : (tensor<5x6x7xf32>, tensor<i32>) -> tensor<6x7xf32>
  %1 = train.gather %data, %s along 0 : (tensor<5x6x7xf32>, tensor<i32>) -> tensor<6x7xf32>
  return %0 : tensor<5x2x3x7xf32>
}
