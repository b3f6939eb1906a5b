// RUN: ds-opt %s | ds-opt | FileCheck %s
// RUN: ds-opt %s --cse | FileCheck %s --check-prefix=CSE

// CHECK-LABEL: func.func @loss_gradient
func.func @loss_gradient() -> tensor<f32> {
  // CHECK: train.loss_gradient 2.500000e-01 : tensor<f32>
  %0 = train.loss_gradient 0.25 : tensor<f32>
  return %0 : tensor<f32>
}

// Tests that it stays where it is even if nobody reads it: it parts forward from backward.
// CSE-LABEL: func.func @marks_the_border
func.func @marks_the_border() {
  // CSE: train.loss_gradient
  %0 = train.loss_gradient 1.0 : tensor<f32>
  return
}
