// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @layer_norm_of_sum_c1_residual(%x: tensor<2x4xf32>, %g: tensor<4xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{residual 'tensor<4xf32>' is not 'tensor<2x4xf32>', in which sums of 'tensor<2x4xf32>' are made}}
  %0:4 = train.layer_norm_of_sum %x, %g, %g, %g epsilon 1.0e-5 : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2x4xf32>)
  return
}

// -----

func.func @layer_norm_of_sum_c1_shift(%x: tensor<2x4xf32>, %g: tensor<4xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{scale 'tensor<4xf32>' and shift 'tensor<2x4xf32>' must both be}}
  %0:4 = train.layer_norm_of_sum %x, %g, %x, %x epsilon 1.0e-5 : (tensor<2x4xf32>, tensor<4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2x4xf32>)
  return
}
