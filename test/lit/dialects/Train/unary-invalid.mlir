// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @exp_of_integers(%a: tensor<2xi64>) {
  // expected-error @+1 {{op operand #0 must be statically shaped tensor of 32-bit float or 64-bit float or bfloat16 type or 16-bit float values}}
  %0 = train.exp %a : (tensor<2xi64>) -> tensor<2xi64>
  return
}

// -----

func.func @not_of_floats(%a: tensor<2xf32>) {
  // expected-error @+1 {{op operand #0 must be statically shaped tensor of 1-bit signless integer values}}
  %0 = train.not %a : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @other_shape(%a: tensor<2xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{op inferred type(s) 'tensor<2xf32>' are incompatible with return type(s) of operation 'tensor<3xf32>'}}
  %0 = train.tanh %a : (tensor<2xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @is_nan_of_integers(%a: tensor<2xi32>) {
  // expected-error @+1 {{op operand #0 must be statically shaped tensor of 32-bit float or 64-bit float or bfloat16 type or 16-bit float values}}
  %0 = train.is_nan %a : (tensor<2xi32>) -> tensor<2xi1>
  return
}
