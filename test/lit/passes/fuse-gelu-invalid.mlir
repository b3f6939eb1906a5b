// This pass has no error of its own; here is what it must leave alone.
// RUN: ds-opt %s --ds-fuse-gelu | FileCheck %s

// Tests what stays: a product whose gradient something else reads, and a GELU that float32 readers take as well.
// CHECK-LABEL: func.func @stays
// CHECK-NOT: train.matmul_gelu
func.func @stays(%x: tensor<2x4xbf16>, %w: tensor<4x8xbf16>, %p: tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xbf16>, tensor<2x8xf32>) {
  %q = train.matmul %x, %w : (tensor<2x4xbf16>, tensor<4x8xbf16>) -> tensor<2x8xbf16>
  %0 = train.cast %q to f32 : (tensor<2x8xbf16>) -> tensor<2x8xf32>
  %1 = train.gelu_tanh %0 : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %y = train.cast %1 to bf16 : (tensor<2x8xf32>) -> tensor<2x8xbf16>
  %2 = train.gelu_tanh_slope %p : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %3 = train.mul %0, %2 : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %1, %y, %3 : tensor<2x8xf32>, tensor<2x8xbf16>, tensor<2x8xf32>
}
