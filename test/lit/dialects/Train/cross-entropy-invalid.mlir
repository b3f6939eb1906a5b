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

// -----

func.func @cross_entropy_c2_0(%x: tensor<3x5xf32>, %l: tensor<3xi64>, %lse: tensor<3xf32>, %g: tensor<f32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{classes 0 is not 1 to 5, the columns of 'tensor<3x5xf32>'}}
  %0:2 = train.cross_entropy mean %x, %l ignore 0 classes 0 : (tensor<3x5xf32>, tensor<3xi64>) -> (tensor<f32>, tensor<3xf32>)
  return
}

// -----

func.func @cross_entropy_c2_6(%x: tensor<3x5xf32>, %l: tensor<3xi64>, %lse: tensor<3xf32>, %g: tensor<f32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{classes 6 is not 1 to 5, the columns of 'tensor<3x5xf32>'}}
  %0:2 = train.cross_entropy mean %x, %l ignore 0 classes 6 : (tensor<3x5xf32>, tensor<3xi64>) -> (tensor<f32>, tensor<3xf32>)
  return
}
