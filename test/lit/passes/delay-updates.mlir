// RUN: ds-opt %s --ds-delay-updates | FileCheck %s

// Tests that updates take what the step before has left, of two parameters with rates of their own, and that this step leaves
// the same for the next one, last.
// CHECK: module attributes {train.stale}
train.variable parameter @w : tensor<3xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"w::gradient" of @w : tensor<3xf32>
train.variable optimizer @"w::exp_avg" of @w : tensor<3xf32> from #train.fill<0.0>
train.variable parameter @v : tensor<3xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"v::gradient" of @v : tensor<3xf32>
train.variable optimizer @"v::exp_avg" of @v : tensor<3xf32> from #train.fill<0.0>
train.variable optimizer @"optimizer::step" : tensor<i64> from #train.fill<0.0>

// CHECK: train.variable optimizer @"w::pending" of @w : tensor<3xf32> from #train.fill<0.000000e+00 : f64>
// CHECK: train.variable optimizer @"optimizer::pending_rate" : tensor<f64> from #train.fill<0.000000e+00 : f64>
// CHECK: train.variable optimizer @"optimizer::pending_step" : tensor<i64> from #train.fill<0.000000e+00 : f64>
// CHECK: train.variable optimizer @"optimizer::pending_clip" : tensor<f64> from #train.fill<0.000000e+00 : f64>
// CHECK: train.variable optimizer @"optimizer::pending_momentum" : tensor<f64> from #train.fill<0.000000e+00 : f64>
// CHECK: train.variable optimizer @"v::pending" of @v : tensor<3xf32> from #train.fill<0.000000e+00 : f64>
// CHECK: train.variable optimizer @"optimizer::pending_rate::1" : tensor<f64> from #train.fill<0.000000e+00 : f64>
// CHECK-LABEL: func.func @update
func.func @update() {
  // CHECK-DAG: %[[RATE:.*]] = train.read @"optimizer::pending_rate" :
  // CHECK-DAG: %[[HALF:.*]] = train.read @"optimizer::pending_rate::1" :
  // CHECK-DAG: %[[STEP:.*]] = train.read @"optimizer::pending_step"
  // CHECK-DAG: %[[CLIP:.*]] = train.read @"optimizer::pending_clip"
  // CHECK-DAG: %[[MOMENTUM:.*]] = train.read @"optimizer::pending_momentum"
  // CHECK: %[[OWNSTEP:.*]] = train.read @"optimizer::step"
  // CHECK: %[[OWNRATE:.*]] = train.learning_rate
  // CHECK: %[[OWNHALF:.*]] = train.mul
  // CHECK: %[[OWNCLIP:.*]] = train.clip_factor
  // CHECK: train.lion @w gradient @"w::pending" moment @"w::exp_avg" rate %[[RATE]] step %[[STEP]] clip %[[CLIP]] momentum %[[MOMENTUM]]
  // CHECK: train.lion @v gradient @"v::pending" moment @"v::exp_avg" rate %[[HALF]] step %[[STEP]] clip %[[CLIP]] momentum %[[MOMENTUM]]
  // CHECK: train.increment
  // CHECK: %[[W:.*]] = train.read @"w::gradient"
  // CHECK-NEXT: train.store %[[W]] into @"w::pending"
  // CHECK-NEXT: %[[V:.*]] = train.read @"v::gradient"
  // CHECK-NEXT: train.store %[[V]] into @"v::pending"
  // CHECK-NEXT: train.store %[[OWNRATE]] into @"optimizer::pending_rate"
  // CHECK-NEXT: train.store %[[OWNSTEP]] into @"optimizer::pending_step"
  // CHECK-NEXT: train.store %[[OWNCLIP]] into @"optimizer::pending_clip"
  // CHECK-NEXT: train.store %{{.*}} into @"optimizer::pending_momentum"
  // CHECK-NEXT: train.store %[[OWNHALF]] into @"optimizer::pending_rate::1"
  // CHECK-NEXT: return
  %step = train.read @"optimizer::step" : tensor<i64>
  %rate = train.learning_rate "constant" %step {lr = 0.5} : (tensor<i64>) -> tensor<f64>
  %two = train.constant dense<0.5> : tensor<f64>
  %half = train.mul %rate, %two : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %momentum = train.constant dense<0.75> : tensor<f64>
  %g = train.read @"w::gradient" : tensor<3xf32>
  %s = train.block_sum_squares %g : (tensor<3xf32>) -> tensor<1xf64>
  %norm = train.global_norm %s : (tensor<1xf64>) -> tensor<f64>
  %clip = train.clip_factor %norm max 1.0 : (tensor<f64>) -> tensor<f64>
  train.lion @w gradient @"w::gradient" moment @"w::exp_avg" rate %rate step %step clip %clip momentum %momentum {beta1 = 0.9, beta2 = 0.99, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>, tensor<f64>) -> ()
  train.lion @v gradient @"v::gradient" moment @"v::exp_avg" rate %half step %step clip %clip momentum %momentum {beta1 = 0.9, beta2 = 0.99, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>, tensor<f64>) -> ()
  train.increment @"optimizer::step"
  return
}
