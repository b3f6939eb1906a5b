// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @gather_elements_c1(%data: tensor<5xf32>, %i: tensor<2xi64>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{axis -1 is not a dimension of 'tensor<5xf32>'}}
  %0 = train.gather_elements %data, %i along -1 : (tensor<5xf32>, tensor<2xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @gather_elements_c2(%data: tensor<5x6xf32>, %i: tensor<6x6xi64>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{indices 'tensor<6x6xi64>' do not fit 'tensor<5x6xf32>' along axis 1}}
  %0 = train.gather_elements %data, %i along 1 : (tensor<5x6xf32>, tensor<6x6xi64>) -> tensor<6x6xf32>
  return
}

// -----

func.func @gather_elements_c3(%data: tensor<5x6xf32>, %i: tensor<5x2xi64>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{op inferred type(s) 'tensor<5x2xf32>' are incompatible with return type(s) of operation 'tensor<5x6xf32>'}}
  %0 = train.gather_elements %data, %i along 1 : (tensor<5x6xf32>, tensor<5x2xi64>) -> tensor<5x6xf32>
  return
}
