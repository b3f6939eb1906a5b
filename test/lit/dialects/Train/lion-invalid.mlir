// RUN: ds-opt %s --split-input-file --verify-diagnostics

train.variable parameter @w : tensor<2xf32> from #train.fill<0.0> {trainable}
train.variable gradient @g : tensor<2xf32>
// expected-note @+1 {{declared here}}
train.variable optimizer @s : tensor<3xf32> from #train.fill<0.0>
func.func @lion_c1(%f: tensor<f64>, %i: tensor<i64>) {
  // expected-error @+1 {{op @s is 'tensor<3xf32>', not 'tensor<2xf32>'}}
  train.lion @w gradient @g moment @s rate %f step %i clip %f {beta1 = 0.0, beta2 = 0.0, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  return
}
