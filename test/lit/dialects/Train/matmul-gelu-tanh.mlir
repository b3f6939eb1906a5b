// RUN: ds-opt %s | ds-opt | FileCheck %s

// Tests the flags and the bias of a product whose GELU is taken along, and both results.
// CHECK-LABEL: func.func @matmul_gelu_tanh_c1
func.func @matmul_gelu_tanh_c1(%a: tensor<2x3xbf16>, %b: tensor<4x3xbf16>, %bias: tensor<4xbf16>) {
  // CHECK: train.matmul_gelu_tanh %arg0, %arg1 transposed bias %arg2 : (tensor<2x3xbf16>, tensor<4x3xbf16>, tensor<4xbf16>) -> (tensor<2x4xbf16>, tensor<2x4xbf16>)
  %y, %p = train.matmul_gelu_tanh %a, %b transposed bias %bias : (tensor<2x3xbf16>, tensor<4x3xbf16>, tensor<4xbf16>) -> (tensor<2x4xbf16>, tensor<2x4xbf16>)
  // CHECK: train.matmul_gelu_tanh %arg0 transposed, %{{.*}} : (tensor<2x3xbf16>, tensor<2x4xbf16>) -> (tensor<3x4xbf16>, tensor<3x4xbf16>)
  %z, %q = train.matmul_gelu_tanh %a transposed, %y : (tensor<2x3xbf16>, tensor<2x4xbf16>) -> (tensor<3x4xbf16>, tensor<3x4xbf16>)
  return
}
