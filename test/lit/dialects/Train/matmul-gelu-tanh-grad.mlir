// RUN: ds-opt %s | ds-opt | FileCheck %s

// Tests the flags of a product that is multiplied with the derivative of a GELU.
// CHECK-LABEL: func.func @matmul_gelu_tanh_grad_c1
func.func @matmul_gelu_tanh_grad_c1(%a: tensor<2x3xf32>, %b: tensor<4x3xf32>, %x: tensor<2x4xf32>) {
  // CHECK: train.matmul_gelu_tanh_grad %arg0, %arg1 transposed of %arg2 : (tensor<2x3xf32>, tensor<4x3xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %d = train.matmul_gelu_tanh_grad %a, %b transposed of %x : (tensor<2x3xf32>, tensor<4x3xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return
}
