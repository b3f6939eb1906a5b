// RUN: ds-opt %s | ds-opt | FileCheck %s

train.variable parameter @w : tensor<2xf32> from #train.fill<0.0> {trainable}
train.variable gradient @g : tensor<2xf32>
train.variable optimizer @m : tensor<2xf32> from #train.fill<0.0>

// Tests the update with momentum and without.
// CHECK-LABEL: func.func @sgd
func.func @sgd(%rate: tensor<f64>, %step: tensor<i64>, %clip: tensor<f64>) {
  // CHECK: train.sgd @w gradient @g momentum @m rate %{{.*}} step %{{.*}} clip %{{.*}} {momentum = 9.000000e-01 : f64, nesterov = true, weight_decay = 0.000000e+00 : f64}
  train.sgd @w gradient @g momentum @m rate %rate step %step clip %clip {momentum = 0.9, nesterov = true, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  // CHECK: train.sgd @w gradient @g rate %{{.*}} {momentum = 0.000000e+00 : f64
  train.sgd @w gradient @g rate %rate step %step clip %clip {momentum = 0.0, nesterov = false, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  return
}
