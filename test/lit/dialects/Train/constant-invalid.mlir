// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @other_element_type() {
  // expected-error @+1 {{op result #0 must be statically shaped tensor of}}
  %0 = train.constant dense<1.0> : tensor<2xf80>
  return
}

// -----

func.func @vector() {
  // expected-error @+1 {{op result #0 must be statically shaped tensor of}}
  %0 = train.constant dense<1.0> : vector<2xf32>
  return
}
