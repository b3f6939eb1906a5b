// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @less_elementwise_c1(%a: tensor<2xi64>, %b: tensor<2xi32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{operands have element types 'i64' and 'i32'; they must be equal}}
  %0 = train.less %a, %b : (tensor<2xi64>, tensor<2xi32>) -> tensor<2xi1>
  return
}

// -----

func.func @equal_elementwise_c2(%a: tensor<2xi64>, %b: tensor<3xi64>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{operands of shapes [2] and [3] do not broadcast}}
  %0 = train.equal %a, %b : (tensor<2xi64>, tensor<3xi64>) -> tensor<2xi1>
  return
}

// -----

func.func @greater_elementwise_c3(%a: tensor<2xi64>) {
  // expected-error @+1 {{op result #0 must be statically shaped tensor of 1-bit signless integer values, but got 'tensor<2xi64>'}}
  %0 = train.greater %a, %a : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  return
}
