// This pass has no error of its own; here is what it must leave alone.
// RUN: ds-opt %s --ds-regroup-gelu | FileCheck %s

// Tests that another constant is none.
// CHECK-LABEL: func.func @another
// CHECK: train.tanh
// CHECK-NOT: train.gelu_tanh
func.func @another(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %c = train.constant dense<0.0447> : tensor<f32>
  %r = train.constant dense<0.797884583> : tensor<f32>
  %one = train.constant dense<1.0> : tensor<f32>
  %half = train.constant dense<0.5> : tensor<f32>
  %0 = train.mul %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = train.mul %0, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = train.mul %1, %c : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %3 = train.add %x, %2 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %4 = train.mul %3, %r : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %5 = train.tanh %4 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %6 = train.add %5, %one : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %7 = train.mul %x, %half : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %y = train.mul %7, %6 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
