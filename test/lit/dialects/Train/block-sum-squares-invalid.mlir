// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @integers(%a: tensor<4xi64>) {
  // expected-error @+1 {{op operand #0 must be statically shaped tensor of 32-bit float or 64-bit float or bfloat16 type or 16-bit float values}}
  %0 = train.block_sum_squares %a : (tensor<4xi64>) -> tensor<1xf64>
  return
}

// -----

func.func @other_count(%a: tensor<1025xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{op inferred type(s) 'tensor<2xf64>' are incompatible with return type(s) of operation 'tensor<1xf64>'}}
  %0 = train.block_sum_squares %a : (tensor<1025xf32>) -> tensor<1xf64>
  return
}

// -----

func.func @block_sum_squares_c1(%a: tensor<1025xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{block 96 must be a power of two from 64 to 1024}}
  %0 = train.block_sum_squares %a by 96 : (tensor<1025xf32>) -> tensor<11xf64>
  return
}
