// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @gather_c1(%data: tensor<5xf32>, %i: tensor<2xi64>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{axis -1 is not a dimension of 'tensor<5xf32>'}}
  %0 = train.gather %data, %i along -1 : (tensor<5xf32>, tensor<2xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @gather_c2(%data: tensor<5x6xf32>, %i: tensor<2xi64>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{op inferred type(s) 'tensor<2x6xf32>' are incompatible with return type(s) of operation 'tensor<5x2xf32>'}}
  %0 = train.gather %data, %i along 0 : (tensor<5x6xf32>, tensor<2xi64>) -> tensor<5x2xf32>
  return
}

// -----

func.func @float_indices(%data: tensor<5xf32>, %i: tensor<2xf32>) {
  // expected-error @+1 {{op operand #1 must be statically shaped tensor of 64-bit signless integer or 32-bit signless integer values}}
  %0 = train.gather %data, %i along 0 : (tensor<5xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}
