// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @linear_weight_grad_c1(%dy: tensor<6x4xf32>, %x: tensor<5x3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{gradient 'tensor<6x4xf32>' and input 'tensor<5x3xf32>' must be matrices of as many rows and of one element type}}
  %w, %b = train.linear_weight_grad %dy, %x : (tensor<6x4xf32>, tensor<5x3xf32>) -> (tensor<3x4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @linear_weight_grad_c2(%dy: tensor<6x4xf32>, %x: tensor<6x3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{wide}}
  %w, %b = train.linear_weight_grad %dy, %x {wide} : (tensor<6x4xf32>, tensor<6x3xf32>) -> (tensor<3x4xf32>, tensor<4xf32>)
  return
}
