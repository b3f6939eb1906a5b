// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @cumsum_c1(%x: tensor<2x7xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{axis 2 is not a dimension of 'tensor<2x7xf32>'}}
  %0 = train.cumsum %x along 2 : (tensor<2x7xf32>) -> tensor<2x7xf32>
  return
}
