// RUN: ds-opt %s | ds-opt | FileCheck %s

// Tests grouped keys, a mask, the gradient, and that lse has one element a row, of f32 for 16 bits.
// CHECK-LABEL: func.func @packed_attention_c1
func.func @packed_attention_c1(%x: tensor<2x3x8x8xf32>, %m: tensor<3x3xi1>, %h: tensor<2x3x6x8xbf16>, %dy: tensor<2x3x4x8xf32>) {
  // CHECK: %[[Y:.*]], %[[LSE:.*]] = train.packed_attention %arg0 heads 4 mask %arg1 scale 2.500000e-01 causal : (tensor<2x3x8x8xf32>, tensor<3x3xi1>) -> (tensor<2x3x4x8xf32>, tensor<2x4x3xf32>)
  %y, %lse = train.packed_attention %x heads 4 mask %m scale 0.25 causal
      : (tensor<2x3x8x8xf32>, tensor<3x3xi1>) -> (tensor<2x3x4x8xf32>, tensor<2x4x3xf32>)
  // CHECK: train.packed_attention %arg2 heads 2 scale 1.000000e+00 : (tensor<2x3x6x8xbf16>) -> (tensor<2x3x2x8xbf16>, tensor<2x2x3xf32>)
  %0:2 = train.packed_attention %h heads 2 scale 1.0 : (tensor<2x3x6x8xbf16>) -> (tensor<2x3x2x8xbf16>, tensor<2x2x3xf32>)
  // CHECK: train.packed_attention_grad %arg3, %arg0 heads 4 mask %arg1 of %[[Y]], %[[LSE]] scale 2.500000e-01 causal
  %1 = train.packed_attention_grad %dy, %x heads 4 mask %m of %y, %lse scale 0.25 causal
      : (tensor<2x3x4x8xf32>, tensor<2x3x8x8xf32>, tensor<3x3xi1>, tensor<2x3x4x8xf32>, tensor<2x4x3xf32>) -> tensor<2x3x8x8xf32>
  return
}
