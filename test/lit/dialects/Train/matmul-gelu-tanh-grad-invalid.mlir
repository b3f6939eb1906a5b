// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @matmul_gelu_tanh_grad_c1(%a: tensor<2x3xf32>, %b: tensor<4x3xf32>, %x: tensor<2x5xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{input 'tensor<2x5xf32>' must have the product's type 'tensor<2x4xf32>'}}
  %d = train.matmul_gelu_tanh_grad %a, %b transposed of %x : (tensor<2x3xf32>, tensor<4x3xf32>, tensor<2x5xf32>) -> tensor<2x4xf32>
  return
}
