// RUN: ds-opt %s --ds-fuse-elementwise --split-input-file --verify-diagnostics | FileCheck %s

// expected-error @+1 {{must have one block; see ds-verify-train-form}}
func.func private @microbatch()

// -----

// Here is what the pass must leave alone. Forward and backward, which train.loss_gradient parts:
// CHECK-LABEL: func.func @forward_and_backward
// CHECK-NOT:   train.fused
// CHECK:       return
func.func @forward_and_backward(%x: tensor<f32>) -> tensor<f32> {
  %0 = train.exp %x : (tensor<f32>) -> tensor<f32>
  %1 = train.loss_gradient 1.0 : tensor<f32>
  %2 = train.mul %0, %1 : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %2 : tensor<f32>
}

// Two result shapes:
// CHECK-LABEL: func.func @shapes
// CHECK-NOT:   train.fused
// CHECK:       return
func.func @shapes(%x: tensor<1x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = train.exp %x : (tensor<1x3xf32>) -> tensor<1x3xf32>
  %1 = train.mul %0, %y : (tensor<1x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// A broadcast whose width no other operand has:
// CHECK-LABEL: func.func @wide
// CHECK-NEXT:  train.broadcast
// CHECK-NEXT:  train.exp
func.func @wide(%x: tensor<1x3xf32>) -> tensor<2x3xf32> {
  %0 = train.broadcast %x to [2, 3] : (tensor<1x3xf32>) -> tensor<2x3xf32>
  %1 = train.exp %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}
