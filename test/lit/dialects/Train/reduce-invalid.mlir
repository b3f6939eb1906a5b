// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @reduce_c1_order(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{axes [1, 0] are not ascending dimensions of 'tensor<2x3xf32>'}}
  %0 = train.reduce_sum %x over [1, 0] : (tensor<2x3xf32>) -> tensor<f32>
  return
}

// -----

func.func @reduce_c1_twice(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{axes [0, 0] are not ascending dimensions of 'tensor<2x3xf32>'}}
  %0 = train.reduce_mean %x over [0, 0] : (tensor<2x3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @reduce_c1_outside(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{axes [2] are not ascending dimensions of 'tensor<2x3xf32>'}}
  %0 = train.reduce_max %x over [2] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @reduce_c1_negative(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{axes [-1] are not ascending dimensions of 'tensor<2x3xf32>'}}
  %0 = train.reduce_sum %x over [-1] : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @mean_of_integers(%x: tensor<2x3xi64>) {
  // expected-error @+1 {{op operand #0 must be statically shaped tensor of 32-bit float or 64-bit float or bfloat16 type or 16-bit float values}}
  %0 = train.reduce_mean %x over [1] : (tensor<2x3xi64>) -> tensor<2xi64>
  return
}

// -----

func.func @reduce_c2(%a: tensor<2x3xi64>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{'wide' is for operands of bf16 or f16, not of 'i64'}}
  %0 = train.reduce_sum %a over [0] {wide} : (tensor<2x3xi64>) -> tensor<3xi64>
  return
}
