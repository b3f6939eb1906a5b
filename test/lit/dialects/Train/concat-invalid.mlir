// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @concat_c1_axis(%a: tensor<4x2xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{axis 2 is not a dimension of 'tensor<4x2xf32>'}}
  %0 = train.concat %a along 2 : (tensor<4x2xf32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @concat_c1_nothing() {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{there is nothing to join}}
  %0 = "train.concat"() <{axis = 0 : i64}> : () -> tensor<4xf32>
  return
}

// -----

func.func @concat_c2_shape(%a: tensor<4x2xf32>, %b: tensor<3x2xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{'tensor<3x2xf32>' cannot be joined to 'tensor<4x2xf32>' along axis 1}}
  %0 = train.concat %a, %b along 1 : (tensor<4x2xf32>, tensor<3x2xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @concat_c2_element(%a: tensor<4xf32>, %b: tensor<4xf64>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{'tensor<4xf64>' cannot be joined to 'tensor<4xf32>' along axis 0}}
  %0 = train.concat %a, %b along 0 : (tensor<4xf32>, tensor<4xf64>) -> tensor<8xf32>
  return
}

// -----

func.func @concat_c2_rank(%a: tensor<4x2xf32>, %b: tensor<4xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{'tensor<4xf32>' cannot be joined to 'tensor<4x2xf32>' along axis 1}}
  %0 = train.concat %a, %b along 1 : (tensor<4x2xf32>, tensor<4xf32>) -> tensor<4x3xf32>
  return
}
