// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @arg_max_c1(%x: tensor<2xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{axis 1 is not a dimension of 'tensor<2xf32>'}}
  %0 = train.arg_max %x along 1 : (tensor<2xf32>) -> tensor<i64>
  return
}

// -----

func.func @arg_max_c1_empty(%x: tensor<2x0xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{axis 1 of 'tensor<2x0xf32>' has no elements}}
  %0 = train.arg_max %x along 1 : (tensor<2x0xf32>) -> tensor<2xi64>
  return
}
