// RUN: ds-opt %s --ds-scale-gradients=microbatches=4 | FileCheck %s
// RUN: ds-opt %s --ds-scale-gradients | FileCheck %s --check-prefix=ONE

// Tests that four micro-batches leave a quarter, and one leaves all.
// CHECK-LABEL: func.func @microbatch
// CHECK:       train.loss_gradient 2.500000e-01 : tensor<f32>
// ONE:         train.loss_gradient 1.000000e+00 : tensor<f32>
func.func @microbatch() -> tensor<f32> {
  %0 = train.loss_gradient 1.0 : tensor<f32>
  return %0 : tensor<f32>
}
