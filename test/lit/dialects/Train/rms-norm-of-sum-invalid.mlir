// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @rms_norm_of_sum_c1_residual(%x: tensor<2x4xf32>, %g: tensor<4xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{residual 'tensor<4xf32>' is not 'tensor<2x4xf32>', in which sums of 'tensor<2x4xf32>' are made}}
  %0:3 = train.rms_norm_of_sum %x, %g, %g epsilon 1.0e-5 : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>, tensor<2x4xf32>)
  return
}

// -----

func.func @rms_norm_of_sum_c1_scale(%x: tensor<2x4xf32>, %g: tensor<3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{scale 'tensor<3xf32>' must be the trailing dimensions of 'tensor<2x4xf32>'}}
  %0:3 = train.rms_norm_of_sum %x, %g, %x epsilon 1.0e-5 : (tensor<2x4xf32>, tensor<3xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>, tensor<2x4xf32>)
  return
}

// -----

func.func @rms_norm_of_sum_c1_narrow(%x: tensor<2x4xbf16>, %g: tensor<4xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{residual 'tensor<2x4xbf16>' is not 'tensor<2x4xf32>', in which sums of 'tensor<2x4xbf16>' are made}}
  %0:4 = train.rms_norm_of_sum %x, %g, %x epsilon 1.0e-5 : (tensor<2x4xbf16>, tensor<4xf32>, tensor<2x4xbf16>) -> (tensor<2x4xbf16>, tensor<2xf32>, tensor<2x4xf32>, tensor<2x4xbf16>)
  return
}
