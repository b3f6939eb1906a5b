// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @global_norm_c1_element(%a: tensor<2xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{partial sums 'tensor<2xf32>' must be an f64 vector}}
  %0 = train.global_norm %a : (tensor<2xf32>) -> tensor<f64>
  return
}

// -----

func.func @global_norm_c1_rank(%a: tensor<2xf64>, %b: tensor<f64>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{partial sums 'tensor<f64>' must be an f64 vector}}
  %0 = train.global_norm %a, %b : (tensor<2xf64>, tensor<f64>) -> tensor<f64>
  return
}
