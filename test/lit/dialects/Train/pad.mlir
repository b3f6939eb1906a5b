// RUN: ds-opt %s | ds-opt | FileCheck %s

// Tests that 1 + 3 + 2 * 2 + 2 = 10 elements come of 3, and low + high of none.
// CHECK-LABEL: func.func @pads
func.func @pads(%x: tensor<3xf32>, %e: tensor<0xi64>) -> tensor<10xf32> {
  // CHECK: train.pad %{{.*}} low [1] high [2] interior [2] with 0.000000e+00 : (tensor<3xf32>) -> tensor<10xf32>
  %0 = train.pad %x low [1] high [2] interior [2] with 0.0 : (tensor<3xf32>) -> tensor<10xf32>
  // CHECK: train.pad %{{.*}} low [1] high [2] interior [7] with 5.000000e-01 : (tensor<0xi64>) -> tensor<3xi64>
  %1 = train.pad %e low [1] high [2] interior [7] with 0.5 : (tensor<0xi64>) -> tensor<3xi64>
  return %0 : tensor<10xf32>
}
