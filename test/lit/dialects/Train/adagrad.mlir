// RUN: ds-opt %s | ds-opt | FileCheck %s

train.variable parameter @w : tensor<2xf32> from #train.fill<0.0> {trainable}
train.variable gradient @g : tensor<2xf32>
train.variable optimizer @s : tensor<2xf32> from #train.fill<0.0>

// CHECK-LABEL: func.func @adagrad
func.func @adagrad(%rate: tensor<f64>, %step: tensor<i64>, %clip: tensor<f64>) {
  // CHECK: train.adagrad @w gradient @g sum @s rate %{{.*}} step %{{.*}} clip %{{.*}} {epsilon = 1.000000e-10 : f64, lr_decay = 5.000000e-01 : f64, weight_decay = 0.000000e+00 : f64}
  train.adagrad @w gradient @g sum @s rate %rate step %step clip %clip {epsilon = 1.0e-10, lr_decay = 0.5, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  return
}
