// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @softmax_c1(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{axis 2 is not a dimension of 'tensor<2x3xf32>'}}
  %0 = train.softmax %x along 2 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @log_softmax_softmax_c1(%x: tensor<f32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{axis 0 is not a dimension of 'tensor<f32>'}}
  %0 = train.log_softmax %x along 0 : (tensor<f32>) -> tensor<f32>
  return
}
