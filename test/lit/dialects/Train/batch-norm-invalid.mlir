// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @batch_norm_c1_channels(%x: tensor<2x3x4xf32>, %g: tensor<4xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{scale 'tensor<4xf32>' and shift 'tensor<4xf32>' must be [C] of an input [N, C, ...], which is 'tensor<2x3x4xf32>'}}
  %0:4 = train.batch_norm %x, %g, %g epsilon 1.0e-5 : (tensor<2x3x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @batch_norm_c1_rank(%x: tensor<3xf32>, %g: tensor<3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{must be [C] of an input [N, C, ...]}}
  %0:4 = train.batch_norm %x, %g, %g epsilon 1.0e-5 : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @batch_norm_grad_c1(%x: tensor<2x3xf32>, %g: tensor<3xf32>, %m: tensor<2xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{operands are not those of a batch_norm of 'tensor<2x3xf32>'}}
  %0:3 = train.batch_norm_grad %x, %x, %g, %m, %g : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xf32>, tensor<2xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}
