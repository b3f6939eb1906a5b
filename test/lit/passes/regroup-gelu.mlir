// RUN: ds-opt %s --ds-regroup-gelu | FileCheck %s

// Tests the form of transformers: x is halved first, and the power is one.
// CHECK-LABEL: func.func @power
// CHECK-NEXT: %[[Y:.*]] = train.gelu_tanh %arg0
// CHECK-NEXT: return %[[Y]]
func.func @power(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %three = train.constant dense<3.0> : tensor<f32>
  %c = train.constant dense<0.044715> : tensor<f32>
  %r = train.constant dense<0.797884583> : tensor<f32>
  %one = train.constant dense<1.0> : tensor<f32>
  %half = train.constant dense<0.5> : tensor<f32>
  %0 = train.pow %x, %three : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %1 = train.mul %0, %c : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %2 = train.add %x, %1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = train.mul %2, %r : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %4 = train.tanh %3 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %5 = train.add %4, %one : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %6 = train.mul %x, %half : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %y = train.mul %6, %5 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// Tests x outside of the sum, and products in another order: 0.5 (x (1 + tanh(r x (1 + c x x)))).
// CHECK-LABEL: func.func @outside
// CHECK-NEXT: train.gelu_tanh %arg0
// CHECK-NEXT: return
func.func @outside(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %c = train.constant dense<0.044715> : tensor<f32>
  %r = train.constant dense<0.797884583> : tensor<f32>
  %one = train.constant dense<1.0> : tensor<f32>
  %half = train.constant dense<0.5> : tensor<f32>
  %0 = train.mul %c, %x : (tensor<f32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = train.mul %0, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = train.add %one, %1 : (tensor<f32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = train.mul %x, %r : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %4 = train.mul %3, %2 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %5 = train.tanh %4 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %6 = train.add %one, %5 : (tensor<f32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %7 = train.mul %x, %6 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = train.mul %half, %7 : (tensor<f32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
