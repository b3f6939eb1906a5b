// This pass has no error of its own; here is what it must leave alone.
// RUN: ds-opt %s --ds-widen-sums | FileCheck %s

// Tests a product that something else reads in bf16: it is computed once, and rounded.
// CHECK-LABEL: func.func @two_readers
func.func @two_readers(%x: tensor<5x3xbf16>, %y: tensor<3x4xbf16>) -> (tensor<5x4xf32>, tensor<5x4xbf16>) {
  // CHECK: train.matmul %arg0, %arg1 : {{.*}} -> tensor<5x4xbf16>
  // CHECK: train.cast
  %0 = train.matmul %x, %y : (tensor<5x3xbf16>, tensor<3x4xbf16>) -> tensor<5x4xbf16>
  %1 = train.cast %0 to f32 : (tensor<5x4xbf16>) -> tensor<5x4xf32>
  return %1, %0 : tensor<5x4xf32>, tensor<5x4xbf16>
}

// Tests a product of activations: a chain of elementwise ops reads it rounded.
// CHECK-LABEL: func.func @activation
func.func @activation(%x: tensor<5x3xbf16>, %y: tensor<3x4xbf16>) -> tensor<5x4xf32> {
  // CHECK: train.matmul %arg0, %arg1 : {{.*}} -> tensor<5x4xbf16>
  // CHECK: train.cast
  %0 = train.matmul %x, %y : (tensor<5x3xbf16>, tensor<3x4xbf16>) -> tensor<5x4xbf16>
  %1 = train.cast %0 to f32 : (tensor<5x4xbf16>) -> tensor<5x4xf32>
  %2 = train.tanh %1 : (tensor<5x4xf32>) -> tensor<5x4xf32>
  return %2 : tensor<5x4xf32>
}

// Tests an op that has no sum in f32 to give.
// CHECK-LABEL: func.func @elementwise
func.func @elementwise(%x: tensor<4xbf16>) -> tensor<4xf32> {
  // CHECK: train.exp %arg0 : (tensor<4xbf16>) -> tensor<4xbf16>
  // CHECK: train.cast
  %0 = train.exp %x : (tensor<4xbf16>) -> tensor<4xbf16>
  %1 = train.cast %0 to f32 : (tensor<4xbf16>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
