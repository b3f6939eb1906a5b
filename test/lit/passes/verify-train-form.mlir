// RUN: ds-opt %s --ds-verify-train-form | FileCheck %s

// Tests that a complete step passes, and is left as it is.
// CHECK: train.variable gradient
train.variable gradient @g : tensor<f32>
// CHECK-LABEL: func.func @microbatch
func.func @microbatch(%x: tensor<f32>) {
  train.accumulate %x into @g : tensor<f32>
  return
}
// CHECK-LABEL: func.func @update
func.func @update() {
  return
}
// CHECK-LABEL: func.func @evaluate
func.func @evaluate(%x: tensor<f32>) {
  return
}
