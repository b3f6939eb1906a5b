// RUN: ds-opt %s --ds-scale-loss="initial=256 window=0" | FileCheck %s

// Tests that factors of gradients are guarded, and the cycled momentum behind them is left alone.
train.variable parameter @w : tensor<3xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"w::gradient" of @w : tensor<3xf32>
train.variable optimizer @"w::exp_avg" of @w : tensor<3xf32> from #train.fill<0.0>
train.variable optimizer @"w::exp_avg_sq" of @w : tensor<3xf32> from #train.fill<0.0>
train.variable optimizer @"optimizer::step" : tensor<i64> from #train.fill<0.0>

func.func @microbatch() -> tensor<f32> {
  %0 = train.loss_gradient 0.5 : tensor<f32>
  return %0 : tensor<f32>
}

// CHECK-LABEL: func.func @update
func.func @update() {
  // CHECK: %[[MOMENTUM:.*]] = train.cycled_momentum
  // CHECK: %[[GUARDED:.*]] = train.select
  // CHECK: train.adamw {{.*}} clip %[[GUARDED]] momentum %[[MOMENTUM]]
  // CHECK: train.lion {{.*}} clip %[[GUARDED]] momentum %[[MOMENTUM]]
  // CHECK: train.lamb {{.*}} clip %[[GUARDED]] momentum %[[MOMENTUM]]
  %step = train.read @"optimizer::step" : tensor<i64>
  %rate = train.learning_rate "constant" %step {lr = 0.5} : (tensor<i64>) -> tensor<f64>
  %momentum = train.cycled_momentum %step {} : (tensor<i64>) -> tensor<f64>
  %g = train.read @"w::gradient" : tensor<3xf32>
  %s = train.block_sum_squares %g : (tensor<3xf32>) -> tensor<1xf64>
  %norm = train.global_norm %s : (tensor<1xf64>) -> tensor<f64>
  %clip = train.constant dense<1.0> : tensor<f64>
  train.adamw @w gradient @"w::gradient" moments @"w::exp_avg", @"w::exp_avg_sq" rate %rate step %step clip %clip momentum %momentum {beta1 = 0.9, beta2 = 0.99, epsilon = 1.0e-8, weight_decay = 0.0, adam_w_mode = true} : (tensor<f64>, tensor<i64>, tensor<f64>, tensor<f64>) -> ()
  train.lion @w gradient @"w::gradient" moment @"w::exp_avg" rate %rate step %step clip %clip momentum %momentum {beta1 = 0.9, beta2 = 0.99, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>, tensor<f64>) -> ()
  train.lamb @w gradient @"w::gradient" moments @"w::exp_avg", @"w::exp_avg_sq" rate %rate step %step clip %clip momentum %momentum {beta1 = 0.9, beta2 = 0.99, epsilon = 1.0e-8, weight_decay = 0.0, max_coeff = 10.0, min_coeff = 0.01, bias_correction = true} : (tensor<f64>, tensor<i64>, tensor<f64>, tensor<f64>) -> ()
  train.increment @"optimizer::step"
  return
}
