// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @layer_norm_grad_c1_mean(%x: tensor<2x4xf32>, %g: tensor<4xf32>, %m: tensor<3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{operands are not those of a layer_norm of 'tensor<2x4xf32>' with scale 'tensor<4xf32>'}}
  %0:3 = train.layer_norm_grad %x, %x, %g, %m, %m : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<4xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @layer_norm_grad_c1_gradient(%x: tensor<2x4xf32>, %g: tensor<4xf32>, %m: tensor<2xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{operands are not those of a layer_norm of}}
  %0:3 = train.layer_norm_grad %g, %x, %g, %m, %m : (tensor<4xf32>, tensor<2x4xf32>, tensor<4xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @layer_norm_grad_c2(%x: tensor<2x4xf32>, %g: tensor<4xf32>, %m: tensor<2xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{residual 'tensor<4xf32>' has not the type of input 'tensor<2x4xf32>'}}
  %0:3 = train.layer_norm_grad %x, %x, %g, %m, %m, %g : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<4xf32>, tensor<2xf32>, tensor<2xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}
