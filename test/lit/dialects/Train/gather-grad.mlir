// RUN: ds-opt %s | ds-opt | FileCheck %s

// Tests the dual of a gather of [5, 6, 7] along 1.
// CHECK-LABEL: func.func @gather_grad
func.func @gather_grad(%g: tensor<5x2x3x7xf32>, %i: tensor<2x3xi64>) -> tensor<5x6x7xf32> {
  // CHECK: train.gather_grad %{{.*}}, %{{.*}} along 1 into [5, 6, 7] : (tensor<5x2x3x7xf32>, tensor<2x3xi64>) -> tensor<5x6x7xf32>
  %0 = train.gather_grad %g, %i along 1 into [5, 6, 7] : (tensor<5x2x3x7xf32>, tensor<2x3xi64>) -> tensor<5x6x7xf32>
  return %0 : tensor<5x6x7xf32>
}
