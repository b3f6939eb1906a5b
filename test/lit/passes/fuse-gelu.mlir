// RUN: ds-opt %s --ds-fuse-gelu | FileCheck %s

// Tests both sides in 16 bits, a reshape between a product and its GELU, and that the reference ops of all are kept.
// CHECK-LABEL: func.func @microbatch
// CHECK: %[[Y:.*]], %[[P:.*]] = train.matmul_gelu_tanh %arg0, %arg1 bias %arg2 {train.reference = array<i64: 1, 2, 3, 4>}
// CHECK: train.reshape %[[Y]] to [1, 2, 8]
// CHECK: train.loss_gradient
// CHECK: train.matmul_gelu_tanh_grad %arg4, %arg3 transposed of %[[P]] {train.reference = array<i64: 6, 7, 8, 9, 10, 11>}
// CHECK-NOT: train.gelu_tanh
func.func @microbatch(%x: tensor<2x4xbf16>, %w: tensor<4x8xbf16>, %b: tensor<8xbf16>, %v: tensor<8x4xbf16>, %dz: tensor<2x4xbf16>)
    -> (tensor<1x2x8xbf16>, tensor<2x8xbf16>) {
  %p = train.matmul %x, %w bias %b {train.reference = array<i64: 1>} : (tensor<2x4xbf16>, tensor<4x8xbf16>, tensor<8xbf16>) -> tensor<2x8xbf16>
  %q = train.reshape %p to [1, 2, 8] : (tensor<2x8xbf16>) -> tensor<1x2x8xbf16>
  %0 = train.cast %q to f32 {train.reference = array<i64: 2>} : (tensor<1x2x8xbf16>) -> tensor<1x2x8xf32>
  %1 = train.gelu_tanh %0 {train.reference = array<i64: 3>} : (tensor<1x2x8xf32>) -> tensor<1x2x8xf32>
  %y = train.cast %1 to bf16 {train.reference = array<i64: 4>} : (tensor<1x2x8xf32>) -> tensor<1x2x8xbf16>
  %loss = train.loss_gradient 1.0 {train.reference = array<i64: 5>} : tensor<f32>
  %d = train.matmul %dz, %v transposed {train.reference = array<i64: 6>} : (tensor<2x4xbf16>, tensor<8x4xbf16>) -> tensor<2x8xbf16>
  %2 = train.cast %d to f32 {train.reference = array<i64: 7>} : (tensor<2x8xbf16>) -> tensor<2x8xf32>
  %3 = train.cast %p to f32 {train.reference = array<i64: 8>} : (tensor<2x8xbf16>) -> tensor<2x8xf32>
  %4 = train.gelu_tanh_slope %3 {train.reference = array<i64: 9>} : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %5 = train.mul %2, %4 {train.reference = array<i64: 10>} : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %dp = train.cast %5 to bf16 {train.reference = array<i64: 11>} : (tensor<2x8xf32>) -> tensor<2x8xbf16>
  return %y, %dp : tensor<1x2x8xbf16>, tensor<2x8xbf16>
}

// Tests float32 without casts, and that a GELU that the backward computes again stays.
// CHECK-LABEL: func.func @again
// CHECK: %[[Y:.*]], %[[P:.*]] = train.matmul_gelu_tanh %arg0, %arg1 :
// CHECK: train.loss_gradient
// CHECK: train.gelu_tanh %[[P]]
func.func @again(%x: tensor<2x4xf32>, %w: tensor<4x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>) {
  %p = train.matmul %x, %w : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %y = train.gelu_tanh %p : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %loss = train.loss_gradient 1.0 : tensor<f32>
  %z = train.gelu_tanh %p : (tensor<2x8xf32>) -> tensor<2x8xf32>
  return %y, %z : tensor<2x8xf32>, tensor<2x8xf32>
}
