// RUN: ds-opt %s --ds-verify-simple-form --split-input-file | FileCheck %s

// Tests that a forward pass is accepted, and left as it is.
// CHECK-LABEL: func.func @forward
// CHECK-NEXT:    return
func.func @forward(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}

// -----

// Tests that so is the step of a model that brought its own algorithm.
// CHECK-LABEL: func.func @microbatch
func.func @microbatch(%x: tensor<f32>) {
  return
}
func.func @update() {
  return
}
func.func @evaluate(%x: tensor<f32>) {
  return
}
