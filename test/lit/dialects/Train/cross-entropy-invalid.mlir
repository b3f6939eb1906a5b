// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @cross_entropy_c1_logits(%x: tensor<3xf32>, %l: tensor<3xi64>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{logits 'tensor<3xf32>' must be [N, C] and labels 'tensor<3xi64>' [N]}}
  %0, %1 = train.cross_entropy mean %x, %l ignore 0 : (tensor<3xf32>, tensor<3xi64>) -> (tensor<f32>, tensor<3xf32>)
  return
}

// -----

func.func @cross_entropy_c1_labels(%x: tensor<3x5xf32>, %l: tensor<5xi64>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{logits 'tensor<3x5xf32>' must be [N, C] and labels 'tensor<5xi64>' [N]}}
  %0, %1 = train.cross_entropy mean %x, %l ignore 0 : (tensor<3x5xf32>, tensor<5xi64>) -> (tensor<f32>, tensor<3xf32>)
  return
}

// -----

func.func @other_reduction(%x: tensor<3x5xf32>, %l: tensor<3xi64>) {
  // expected-error @+2 {{expected ::ds::train::Reduction to be one of: mean, sum}}
  // expected-error @+1 {{failed to parse}}
  %0, %1 = train.cross_entropy median %x, %l ignore 0 : (tensor<3x5xf32>, tensor<3xi64>) -> (tensor<f32>, tensor<3xf32>)
  return
}
