// RUN: ds-opt %s | ds-opt | FileCheck %s

train.variable parameter @w : tensor<2xf32> from #train.fill<0.0> {trainable}
train.variable gradient @g : tensor<2xf32>
train.variable optimizer @m : tensor<2xf32> from #train.fill<0.0>

// CHECK-LABEL: func.func @lion
func.func @lion(%rate: tensor<f64>, %step: tensor<i64>, %clip: tensor<f64>) {
  // CHECK: train.lion @w gradient @g moment @m rate %{{.*}} step %{{.*}} clip %{{.*}} {beta1 = 9.000000e-01 : f64, beta2 = {{.*}} : f64, weight_decay = 1.000000e-02 : f64} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  train.lion @w gradient @g moment @m rate %rate step %step clip %clip {beta1 = 0.9, beta2 = 0.99, weight_decay = 0.01} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  // CHECK: train.lion @w gradient @g moment @m rate %[[RATE:.*]] step %{{.*}} clip %{{.*}} momentum %[[RATE]] {
  train.lion @w gradient @g moment @m rate %rate step %step clip %clip momentum %rate {beta1 = 0.9, beta2 = 0.99, weight_decay = 0.01} : (tensor<f64>, tensor<i64>, tensor<f64>, tensor<f64>) -> ()
  return
}
