// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @cross_entropy_with_grad_c1_labels(%x: tensor<3x5xf32>, %l: tensor<5xi64>, %g: tensor<f32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{logits 'tensor<3x5xf32>' must be [N, C] and labels 'tensor<5xi64>' [N]}}
  %0:3 = train.cross_entropy_with_grad sum %x, %l, %g ignore 0 : (tensor<3x5xf32>, tensor<5xi64>, tensor<f32>) -> (tensor<f32>, tensor<3xf32>, tensor<3x5xf32>)
  return
}

// -----

func.func @cross_entropy_with_grad_c1_gradient(%x: tensor<3x5xbf16>, %l: tensor<3xi64>, %g: tensor<bf16>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{gradient 'tensor<bf16>' has not the type of the loss, 'tensor<f32>'}}
  %0:3 = train.cross_entropy_with_grad sum %x, %l, %g ignore 0 : (tensor<3x5xbf16>, tensor<3xi64>, tensor<bf16>) -> (tensor<f32>, tensor<3xf32>, tensor<3x5xbf16>)
  return
}
