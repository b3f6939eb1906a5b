// RUN: ds-opt %s --split-input-file --verify-diagnostics

train.variable parameter @w : tensor<2xf32> from #train.fill<0.0> {trainable}
// expected-note @+1 {{declared here}}
train.variable gradient @g : tensor<2xf64>
func.func @sgd_c1(%f: tensor<f64>, %i: tensor<i64>) {
  // expected-error @+1 {{op @g is 'tensor<2xf64>', not 'tensor<2xf32>'}}
  train.sgd @w gradient @g rate %f step %i clip %f {momentum = 0.0, nesterov = false, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  return
}

// -----

train.variable parameter @w : tensor<2xf32> from #train.fill<0.0> {trainable}
train.variable gradient @g : tensor<2xf32>
func.func @sgd_c2_needs(%f: tensor<f64>, %i: tensor<i64>) {
  // expected-error @+1 {{op momentum needs a momentum buffer}}
  train.sgd @w gradient @g rate %f step %i clip %f {momentum = 0.9, nesterov = false, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  return
}

// -----

train.variable parameter @w : tensor<2xf32> from #train.fill<0.0> {trainable}
train.variable gradient @g : tensor<2xf32>
func.func @sgd_c2_without(%f: tensor<f64>, %i: tensor<i64>) {
  // expected-error @+1 {{op without momentum there is no momentum buffer}}
  train.sgd @w gradient @g momentum @w rate %f step %i clip %f {momentum = 0.0, nesterov = false, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  return
}
