// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @select_elementwise_c1(%c: tensor<2xi1>, %a: tensor<2xf32>, %b: tensor<2xi64>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{operands have element types 'f32' and 'i64'; they must be equal}}
  %0 = train.select %c, %a, %b : (tensor<2xi1>, tensor<2xf32>, tensor<2xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @select_elementwise_c2(%c: tensor<3xi1>, %a: tensor<2xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{operands of shapes [3] and [2] do not broadcast}}
  %0 = train.select %c, %a, %a : (tensor<3xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @condition_is_i1(%a: tensor<2xf32>) {
  // expected-error @+1 {{op operand #0 must be statically shaped tensor of 1-bit signless integer values}}
  %0 = train.select %a, %a, %a : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}
