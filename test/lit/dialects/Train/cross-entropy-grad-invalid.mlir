// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @cross_entropy_grad_c1_lse(%x: tensor<3x5xf32>, %l: tensor<3xi64>, %lse: tensor<5xf32>, %g: tensor<f32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{operands are not those of a cross_entropy of 'tensor<3x5xf32>'}}
  %0 = train.cross_entropy_grad sum %x, %l, %lse, %g ignore 0 : (tensor<3x5xf32>, tensor<3xi64>, tensor<5xf32>, tensor<f32>) -> tensor<3x5xf32>
  return
}

// -----

func.func @cross_entropy_grad_c1_gradient(%x: tensor<3x5xf32>, %l: tensor<3xi64>, %lse: tensor<3xf32>, %g: tensor<f64>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{operands are not those of a cross_entropy of 'tensor<3x5xf32>'}}
  %0 = train.cross_entropy_grad sum %x, %l, %lse, %g ignore 0 : (tensor<3x5xf32>, tensor<3xi64>, tensor<3xf32>, tensor<f64>) -> tensor<3x5xf32>
  return
}

// -----

func.func @cross_entropy_grad_c2_0(%x: tensor<3x5xf32>, %l: tensor<3xi64>, %lse: tensor<3xf32>, %g: tensor<f32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{classes 0 is not 1 to 5, the columns of 'tensor<3x5xf32>'}}
  %0 = train.cross_entropy_grad sum %x, %l, %lse, %g ignore 0 classes 0 : (tensor<3x5xf32>, tensor<3xi64>, tensor<3xf32>, tensor<f32>) -> tensor<3x5xf32>
  return
}

// -----

func.func @cross_entropy_grad_c2_6(%x: tensor<3x5xf32>, %l: tensor<3xi64>, %lse: tensor<3xf32>, %g: tensor<f32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{classes 6 is not 1 to 5, the columns of 'tensor<3x5xf32>'}}
  %0 = train.cross_entropy_grad sum %x, %l, %lse, %g ignore 0 classes 6 : (tensor<3x5xf32>, tensor<3xi64>, tensor<3xf32>, tensor<f32>) -> tensor<3x5xf32>
  return
}
