// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @softmax_grad_c1_types(%y: tensor<2x3xf32>, %g: tensor<2x1xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{output 'tensor<2x3xf32>' and gradient 'tensor<2x1xf32>' differ}}
  %0 = train.softmax_grad %y, %g along 1 : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @log_softmax_grad_softmax_grad_c1_axis(%y: tensor<2x3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{axis -1 is not a dimension of 'tensor<2x3xf32>'}}
  %0 = train.log_softmax_grad %y, %y along -1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}
