// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @add_elementwise_c1(%a: tensor<2xf32>, %b: tensor<2xf64>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{operands have element types 'f32' and 'f64'; they must be equal}}
  %0 = train.add %a, %b : (tensor<2xf32>, tensor<2xf64>) -> tensor<2xf32>
  return
}

// -----

func.func @add_elementwise_c2(%a: tensor<2x3xf32>, %b: tensor<2xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{operands of shapes [2, 3] and [2] do not broadcast}}
  %0 = train.add %a, %b : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

// 0 broadcasts with 1 only.
func.func @mul_elementwise_c2(%a: tensor<0xf32>, %b: tensor<2xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{operands of shapes [0] and [2] do not broadcast}}
  %0 = train.mul %a, %b : (tensor<0xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @add_elementwise_c3(%a: tensor<2x1xf32>, %b: tensor<3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{op inferred type(s) 'tensor<2x3xf32>' are incompatible with return type(s) of operation 'tensor<2x1xf32>'}}
  %0 = train.add %a, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x1xf32>
  return
}

// -----

func.func @pow_of_integers(%a: tensor<2xi64>) {
  // expected-error @+1 {{op operand #0 must be statically shaped tensor of 32-bit float or 64-bit float or bfloat16 type or 16-bit float values, but got 'tensor<2xi64>'}}
  %0 = train.pow %a, %a : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  return
}

// -----

func.func @and_of_floats(%a: tensor<2xf32>) {
  // expected-error @+1 {{op operand #0 must be statically shaped tensor of 1-bit signless integer values}}
  %0 = train.and %a, %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @half_precision(%a: tensor<2xf80>) {
  // expected-error @+1 {{op operand #0 must be statically shaped tensor of}}
  %0 = train.add %a, %a : (tensor<2xf80>, tensor<2xf80>) -> tensor<2xf80>
  return
}

// -----

func.func @dynamic(%a: tensor<?xf32>) {
  // expected-error @+1 {{op operand #0 must be statically shaped tensor of}}
  %0 = train.add %a, %a : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----

func.func @unranked(%a: tensor<*xf32>) {
  // expected-error @+1 {{op operand #0 must be statically shaped tensor of}}
  %0 = train.add %a, %a : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  return
}
