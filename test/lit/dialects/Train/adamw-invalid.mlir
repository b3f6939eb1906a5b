// RUN: ds-opt %s --split-input-file --verify-diagnostics

train.variable parameter @w : tensor<2xf32> from #train.fill<0.0> {trainable}
train.variable gradient @g : tensor<2xf32>
// expected-note @+1 {{declared here}}
train.variable optimizer @m : tensor<3xf32> from #train.fill<0.0>
func.func @adamw_c1_type(%f: tensor<f64>, %i: tensor<i64>) {
  // expected-error @+1 {{op @m is 'tensor<3xf32>', not 'tensor<2xf32>'}}
  train.adamw @w gradient @g moments @m, @m rate %f step %i clip %f {beta1 = 0.9, beta2 = 0.99, epsilon = 1.0e-8, weight_decay = 0.01, adam_w_mode = true} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  return
}

// -----

train.variable parameter @w : tensor<2xi64> from #train.fill<0.0>
func.func @adamw_c1_float(%f: tensor<f64>, %i: tensor<i64>) {
  // expected-error @+1 {{op @w is 'tensor<2xi64>'; only floats are updated}}
  train.adamw @w gradient @w moments @w, @w rate %f step %i clip %f {beta1 = 0.9, beta2 = 0.99, epsilon = 1.0e-8, weight_decay = 0.01, adam_w_mode = true} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  return
}

// -----

func.func @adamw_c1_name(%f: tensor<f64>, %i: tensor<i64>) {
  // expected-error @+1 {{op @w is not a train.variable}}
  train.adamw @w gradient @w moments @w, @w rate %f step %i clip %f {beta1 = 0.9, beta2 = 0.99, epsilon = 1.0e-8, weight_decay = 0.01, adam_w_mode = true} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  return
}

// -----

train.variable parameter @w : tensor<2xf32> from #train.fill<0.0> {trainable}
// expected-note @+1 {{declared here}}
train.variable gradient @g : tensor<3xbf16>
train.variable optimizer @m : tensor<2xf32> from #train.fill<0.0>
func.func @adamw_c1_gradient(%f: tensor<f64>, %i: tensor<i64>) {
  // expected-error @+1 {{op @g is 'tensor<3xbf16>', not 'tensor<2xf32>'}}
  train.adamw @w gradient @g moments @m, @m rate %f step %i clip %f {beta1 = 0.9, beta2 = 0.99, epsilon = 1.0e-8, weight_decay = 0.01, adam_w_mode = true} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  return
}

// -----

train.variable parameter @w : tensor<2xbf16> from #train.fill<0.0> {trainable}
train.variable optimizer @m : tensor<2xf32> from #train.fill<0.0>
// expected-note @+1 {{declared here}}
train.variable optimizer @v : tensor<2xbf16> from #train.fill<0.0>
func.func @adamw_c1_moments(%f: tensor<f64>, %i: tensor<i64>) {
  // expected-error @+1 {{op @v is 'tensor<2xbf16>', not 'tensor<2xf32>'}}
  train.adamw @w gradient @w moments @m, @v rate %f step %i clip %f {beta1 = 0.9, beta2 = 0.99, epsilon = 1.0e-8, weight_decay = 0.01, adam_w_mode = true} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  return
}
