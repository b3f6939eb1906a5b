// RUN: ds-opt %s --split-input-file --verify-diagnostics

train.variable parameter @w : tensor<2xf32> from #train.fill<0.0> {trainable}
train.variable gradient @g : tensor<2xf32>
train.variable optimizer @m : tensor<2xf32> from #train.fill<0.0>
// expected-note @+1 {{declared here}}
train.variable optimizer @v : tensor<3xf32> from #train.fill<0.0>
func.func @lamb_c1(%f: tensor<f64>, %i: tensor<i64>) {
  // expected-error @+1 {{op @v is 'tensor<3xf32>', not 'tensor<2xf32>'}}
  train.lamb @w gradient @g moments @m, @v rate %f step %i clip %f {beta1 = 0.0, beta2 = 0.0, epsilon = 0.0, weight_decay = 0.0, max_coeff = 1.0, min_coeff = 0.0, bias_correction = false} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  return
}

// -----

train.variable parameter @w : tensor<2xf32> from #train.fill<0.0> {trainable}
train.variable gradient @g : tensor<2xf32>
train.variable optimizer @m : tensor<2xf32> from #train.fill<0.0>
train.variable optimizer @v : tensor<2xf32> from #train.fill<0.0>
func.func @lamb_c2(%f: tensor<f64>, %i: tensor<i64>) {
  // expected-error @+1 {{op min_coeff 2.000000e+00 must be at least 0 and at most max_coeff 1.000000e+00}}
  train.lamb @w gradient @g moments @m, @v rate %f step %i clip %f {beta1 = 0.0, beta2 = 0.0, epsilon = 0.0, weight_decay = 0.0, max_coeff = 1.0, min_coeff = 2.0, bias_correction = false} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  return
}
