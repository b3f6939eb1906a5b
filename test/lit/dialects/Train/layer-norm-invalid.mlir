// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @layer_norm_c1_shape(%x: tensor<2x4xf32>, %g: tensor<3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{scale 'tensor<3xf32>' and shift 'tensor<3xf32>' must both be the trailing dimensions of 'tensor<2x4xf32>'}}
  %0:3 = train.layer_norm %x, %g, %g epsilon 1.0e-5 : (tensor<2x4xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x4xf32>, tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @layer_norm_c1_shift(%x: tensor<2x4xf32>, %g: tensor<4xf32>, %s: tensor<2x4xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{scale 'tensor<4xf32>' and shift 'tensor<2x4xf32>' must both be}}
  %0:3 = train.layer_norm %x, %g, %s epsilon 1.0e-5 : (tensor<2x4xf32>, tensor<4xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @layer_norm_c1_element(%x: tensor<2x4xf32>, %g: tensor<4xf64>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{scale 'tensor<4xf64>' and shift 'tensor<4xf64>' must both be}}
  %0:3 = train.layer_norm %x, %g, %g epsilon 1.0e-5 : (tensor<2x4xf32>, tensor<4xf64>, tensor<4xf64>) -> (tensor<2x4xf32>, tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @layer_norm_c1_scalar(%x: tensor<2x4xf32>, %g: tensor<f32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{scale 'tensor<f32>' and shift 'tensor<f32>' must both be}}
  %0:3 = train.layer_norm %x, %g, %g epsilon 1.0e-5 : (tensor<2x4xf32>, tensor<f32>, tensor<f32>) -> (tensor<2x4xf32>, tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @layer_norm_c2(%x: tensor<2x4xf32>, %g: tensor<4xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{op inferred type(s) 'tensor<2x4xf32>', 'tensor<2xf32>', 'tensor<2xf32>' are incompatible}}
  %0:3 = train.layer_norm %x, %g, %g epsilon 1.0e-5 : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2x1xf32>, tensor<2x1xf32>)
  return
}
