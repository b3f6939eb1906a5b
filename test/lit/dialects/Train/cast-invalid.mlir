// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @eighty_bits(%x: tensor<2xf32>) {
  // expected-error @+1 {{op result #0 must be statically shaped tensor of}}
  %0 = train.cast %x to f80 : (tensor<2xf32>) -> tensor<2xf80>
  return
}

// -----

func.func @no_element_type(%x: tensor<2xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{'none' is none of f32, f64, bf16, f16, i64, i32, i1}}
  %0 = train.cast %x to none : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @other_type(%x: tensor<2xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{op inferred type(s) 'tensor<2xi64>' are incompatible with return type(s) of operation 'tensor<2xi32>'}}
  %0 = train.cast %x to i64 : (tensor<2xf32>) -> tensor<2xi32>
  return
}
