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

// -----

func.func @global_norm_c2_number(%a: tensor<2xf64>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{there are 2 blocks for 1 operands}}
  %0 = train.global_norm %a by [1024, 1024] : (tensor<2xf64>) -> tensor<f64>
  return
}

// -----

func.func @global_norm_c2_block(%a: tensor<2xf64>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{block 32 must be a power of two from 64 to 1024, and 'tensor<2xf64>' make whole sums of 1024}}
  %0 = train.global_norm %a by [32] : (tensor<2xf64>) -> tensor<f64>
  return
}

// -----

func.func @global_norm_c2_whole(%a: tensor<2xf64>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{block 256 must be a power of two from 64 to 1024, and 'tensor<2xf64>' make whole sums of 1024}}
  %0 = train.global_norm %a by [256] : (tensor<2xf64>) -> tensor<f64>
  return
}
