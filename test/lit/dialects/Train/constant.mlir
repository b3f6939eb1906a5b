// RUN: ds-opt %s | ds-opt | FileCheck %s
// RUN: ds-opt %s --canonicalize | FileCheck %s --check-prefix=FOLD

// Tests splats, tables and masks.
// CHECK-LABEL: func.func @constants
func.func @constants() -> tensor<2xi1> {
  // CHECK: train.constant dense<5.000000e-01> : tensor<f32>
  %0 = train.constant dense<0.5> : tensor<f32>
  // CHECK: train.constant dense<[3, 1]> : tensor<2xi64>
  %1 = train.constant dense<[3, 1]> : tensor<2xi64>
  // CHECK: train.constant dense<[true, false]> : tensor<2xi1>
  %2 = train.constant dense<[true, false]> : tensor<2xi1>
  return %2 : tensor<2xi1>
}

// Tests that equal constants become one.
// FOLD-LABEL: func.func @fold_equal
// FOLD:         %[[C:.*]] = train.constant
// FOLD-NOT:     train.constant
// FOLD:         return %[[C]], %[[C]]
func.func @fold_equal() -> (tensor<f32>, tensor<f32>) {
  %0 = train.constant dense<2.0> : tensor<f32>
  %1 = train.constant dense<2.0> : tensor<f32>
  return %0, %1 : tensor<f32>, tensor<f32>
}
