// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @matmul_gelu_tanh_c1(%a: tensor<2x3xf32>, %b: tensor<4x3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{contracted dimensions differ: 3 of 'tensor<2x3xf32>' and 4 of 'tensor<4x3xf32>'}}
  %y, %p = train.matmul_gelu_tanh %a, %b : (tensor<2x3xf32>, tensor<4x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  return
}
