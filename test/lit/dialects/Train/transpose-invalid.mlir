// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @transpose_c1_twice(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{[1, 1] is not a permutation of the dimensions of 'tensor<2x3xf32>'}}
  %0 = train.transpose %x by [1, 1] : (tensor<2x3xf32>) -> tensor<3x3xf32>
  return
}

// -----

func.func @transpose_c1_short(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{[0] is not a permutation of the dimensions of 'tensor<2x3xf32>'}}
  %0 = train.transpose %x by [0] : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @transpose_c1_empty(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{[] is not a permutation of the dimensions of 'tensor<2x3xf32>'}}
  %0 = train.transpose %x by [] : (tensor<2x3xf32>) -> tensor<f32>
  return
}

// -----

func.func @transpose_c1_outside(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{[0, -1] is not a permutation of the dimensions of 'tensor<2x3xf32>'}}
  %0 = train.transpose %x by [0, -1] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}
