// RUN: ds-opt %s --ds-recompute --split-input-file --verify-diagnostics

train.variable metric @loss : tensor<4xf32>
func.func @microbatch(%x: tensor<4xf32> {train.input = "x"}) {
  // expected-error @+1 {{changes state, so it cannot be done twice; take train.recompute away}}
  train.accumulate %x into @loss {train.recompute} : tensor<4xf32>
  %g = train.loss_gradient 1.0 : tensor<f32>
  return
}

// -----

// expected-error @+1 {{needs @microbatch, of one block; see ds-verify-train-form}}
module {
  func.func @forward(%x: tensor<4xf32> {train.input = "x"}) {
    return
  }
}
