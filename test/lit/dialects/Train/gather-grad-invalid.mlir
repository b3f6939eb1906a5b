// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @gather_grad_c1_shape(%g: tensor<2x7xf32>, %i: tensor<2xi64>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{gradient 'tensor<2x7xf32>' is not that of a gather from [5, 6] along axis 0}}
  %0 = train.gather_grad %g, %i along 0 into [5, 6] : (tensor<2x7xf32>, tensor<2xi64>) -> tensor<5x6xf32>
  return
}

// -----

func.func @gather_grad_c1_axis(%g: tensor<2xf32>, %i: tensor<2xi64>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{gradient 'tensor<2xf32>' is not that of a gather from [5] along axis 1}}
  %0 = train.gather_grad %g, %i along 1 into [5] : (tensor<2xf32>, tensor<2xi64>) -> tensor<5xf32>
  return
}

// -----

func.func @gather_grad_c1_negative(%g: tensor<2xf32>, %i: tensor<2xi64>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{gradient 'tensor<2xf32>' is not that of a gather from [-5] along axis 0}}
  %0 = train.gather_grad %g, %i along 0 into [-5] : (tensor<2xf32>, tensor<2xi64>) -> tensor<5xf32>
  return
}

// -----

func.func @gather_grad_c2(%dy: tensor<5x4xf64>, %ids: tensor<5xi64>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{'wide' is for operands of bf16 or f16, not of 'f64'}}
  %0 = train.gather_grad %dy, %ids along 0 into [9, 4] {wide} : (tensor<5x4xf64>, tensor<5xi64>) -> tensor<9x4xf64>
  return
}
