// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @rms_norm_c1(%x: tensor<2x4xf32>, %g: tensor<3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{scale 'tensor<3xf32>' must be the trailing dimensions of 'tensor<2x4xf32>'}}
  %0:2 = train.rms_norm %x, %g epsilon 1.0e-5 : (tensor<2x4xf32>, tensor<3xf32>) -> (tensor<2x4xf32>, tensor<2xf32>)
  return
}

// -----

func.func @rms_norm_grad_c1(%x: tensor<2x4xf32>, %g: tensor<4xf32>, %r: tensor<4xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{operands are not those of a rms_norm of 'tensor<2x4xf32>' with scale 'tensor<4xf32>'}}
  %0:2 = train.rms_norm_grad %x, %x, %g, %r : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @rms_norm_grad_c2(%x: tensor<2x4xf32>, %g: tensor<4xf32>, %r: tensor<2xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{residual 'tensor<4xf32>' has not the type of input 'tensor<2x4xf32>'}}
  %0:2 = train.rms_norm_grad %x, %x, %g, %r, %g : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<4xf32>, tensor<2xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<4xf32>)
  return
}
