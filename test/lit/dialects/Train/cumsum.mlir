// RUN: ds-opt %s | ds-opt | FileCheck %s

// Tests that the result has the input's type.
// CHECK-LABEL: func.func @cumsum
func.func @cumsum(%x: tensor<2x7xi64>) -> tensor<2x7xi64> {
  // CHECK: train.cumsum exclusive reverse %{{.*}} along 1 : (tensor<2x7xi64>) -> tensor<2x7xi64>
  %0 = train.cumsum exclusive reverse %x along 1 : (tensor<2x7xi64>) -> tensor<2x7xi64>
  return %0 : tensor<2x7xi64>
}
