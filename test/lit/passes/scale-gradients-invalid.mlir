// RUN: ds-opt %s --ds-scale-gradients=microbatches=2 --split-input-file --verify-diagnostics

// expected-error @+1 {{needs one train.loss_gradient and microbatches >= 1; there are 0, microbatches is 2}}
module {
}

// -----

// expected-error @+1 {{needs one train.loss_gradient and microbatches >= 1; there are 2, microbatches is 2}}
module {
  func.func @microbatch() {
    %0 = train.loss_gradient 1.0 : tensor<f32>
    %1 = train.loss_gradient 1.0 : tensor<f32>
    return
  }
}

// -----

func.func @microbatch() {
  // expected-error @+1 {{op is scaled already; every scale is applied once}}
  %0 = train.loss_gradient 0.5 : tensor<f32>
  return
}
