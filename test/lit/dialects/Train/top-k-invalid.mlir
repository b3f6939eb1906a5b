// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @top_k_c1(%x: tensor<f32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{'tensor<f32>' has no dimension}}
  %0:2 = train.top_k 1 of %x : (tensor<f32>) -> (tensor<f32>, tensor<i64>)
  return
}

// -----

func.func @top_k_c2(%x: tensor<2x7xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{k is 8 and must be from 0 to 7, the last dimension of 'tensor<2x7xf32>'}}
  %0:2 = train.top_k 8 of %x : (tensor<2x7xf32>) -> (tensor<2x8xf32>, tensor<2x8xi64>)
  return
}
