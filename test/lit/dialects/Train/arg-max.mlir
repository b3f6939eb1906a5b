// RUN: ds-opt %s | ds-opt | FileCheck %s

// Tests that the dimension goes and the result is i64, whatever the input.
// CHECK-LABEL: func.func @arg_max
func.func @arg_max(%x: tensor<2x3x4xi32>, %y: tensor<3xf64>) -> tensor<2x4xi64> {
  // CHECK: train.arg_max %{{.*}} along 1 : (tensor<2x3x4xi32>) -> tensor<2x4xi64>
  %0 = train.arg_max %x along 1 : (tensor<2x3x4xi32>) -> tensor<2x4xi64>
  // CHECK: train.arg_max last %{{.*}} along 0 : (tensor<3xf64>) -> tensor<i64>
  %1 = train.arg_max last %y along 0 : (tensor<3xf64>) -> tensor<i64>
  return %0 : tensor<2x4xi64>
}
