// RUN: ds-opt %s --ds-delay-updates --split-input-file --verify-diagnostics

// Tests that there must be updates.
// expected-error @+1 {{has no @update; ds-insert-optimizer makes it}}
module {
}

// -----

// Tests that nothing is delayed twice: the update reads the gradient of the step before already.
train.variable parameter @w : tensor<3xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"w::gradient" of @w : tensor<3xf32>
train.variable optimizer @"w::pending" of @w : tensor<3xf32> from #train.fill<0.0>
func.func @update(%rate: tensor<f64>, %step: tensor<i64>, %clip: tensor<f64>) {
  // expected-error @+1 {{reads no gradient of its parameter that the step computes, so there is none to delay}}
  train.sgd @w gradient @"w::pending" rate %rate step %step clip %clip {momentum = 0.0, weight_decay = 0.0, nesterov = false} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  return
}
