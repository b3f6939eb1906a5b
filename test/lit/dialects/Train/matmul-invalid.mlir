// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @matmul_c1_rank(%a: tensor<3xf32>, %b: tensor<3x4xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{operands 'tensor<3xf32>' and 'tensor<3x4xf32>' must have two or more dimensions and one element type}}
  %0 = train.matmul %a, %b : (tensor<3xf32>, tensor<3x4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @matmul_c1_element(%a: tensor<2x3xf32>, %b: tensor<3x4xf64>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{must have two or more dimensions and one element type}}
  %0 = train.matmul %a, %b : (tensor<2x3xf32>, tensor<3x4xf64>) -> tensor<2x4xf32>
  return
}

// -----

func.func @matmul_c2(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{contracted dimensions differ: 3 of 'tensor<2x3xf32>' and 4 of 'tensor<3x4xf32>'}}
  %0 = train.matmul %a, %b transposed : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @matmul_c3(%a: tensor<5x2x3xf32>, %b: tensor<6x3x4xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{leading dimensions of 'tensor<5x2x3xf32>' and 'tensor<6x3x4xf32>' do not broadcast}}
  %0 = train.matmul %a, %b : (tensor<5x2x3xf32>, tensor<6x3x4xf32>) -> tensor<5x2x4xf32>
  return
}

// -----

func.func @matmul_c4(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>, %bias: tensor<2xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{bias 'tensor<2xf32>' must be a vector of 4 'f32'}}
  %0 = train.matmul %a, %b bias %bias : (tensor<2x3xf32>, tensor<3x4xf32>, tensor<2xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @matmul_c5(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{'wide' is for operands of bf16 or f16, not of 'f32'}}
  %0 = train.matmul %a, %b {wide} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return
}
