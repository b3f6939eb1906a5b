// RUN: ds-opt %s | ds-opt | FileCheck %s

// Tests that the result has the indices' shape, which may be smaller than the data's.
// CHECK-LABEL: func.func @gather_elements_c3
func.func @gather_elements_c3(%data: tensor<5x6xi1>, %i: tensor<4x9xi32>) -> tensor<4x9xi1> {
  // CHECK: train.gather_elements %{{.*}}, %{{.*}} along 1 : (tensor<5x6xi1>, tensor<4x9xi32>) -> tensor<4x9xi1>
  %0 = train.gather_elements %data, %i along 1 : (tensor<5x6xi1>, tensor<4x9xi32>) -> tensor<4x9xi1>
  return %0 : tensor<4x9xi1>
}
