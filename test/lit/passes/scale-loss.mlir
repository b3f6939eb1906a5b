// RUN: ds-opt %s --ds-scale-loss="initial=256 window=100 hysteresis=3 least=2" | FileCheck %s
// RUN: ds-opt %s --ds-scale-loss="initial=256 window=100 hysteresis=3 consecutive=true" | FileCheck %s --check-prefix=EACH

train.variable parameter @w : tensor<3xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"w::gradient" of @w : tensor<3xf32>
train.variable optimizer @"optimizer::step" : tensor<i64> from #train.fill<0.0>

// Tests a dynamic scale: its state, and what a step leaves of it.
// CHECK-LABEL: func.func @microbatch
func.func @microbatch() -> tensor<f32> {
  // CHECK: %[[SEED:.*]] = train.loss_gradient
  // CHECK: %[[SCALE:.*]] = train.read @"optimizer::loss_scale"
  // CHECK: %[[SCALED:.*]] = train.mul %[[SEED]],
  // CHECK: return %[[SCALED]]
  %0 = train.loss_gradient 0.5 : tensor<f32>
  return %0 : tensor<f32>
}

// CHECK: train.variable optimizer @"optimizer::loss_scale" : tensor<f32> from #train.fill<2.560000e+02 : f64>
// CHECK: train.variable optimizer @"optimizer::loss_scale_clean_steps" : tensor<i64> from #train.fill<0.000000e+00 : f64>
// CHECK: train.variable optimizer @"optimizer::loss_scale_hysteresis" : tensor<i64> from #train.fill<3.000000e+00 : f64>
// CHECK-LABEL: func.func @update
// EACH-LABEL: func.func @update
func.func @update() {
  // CHECK: %[[NORM:.*]] = train.global_norm
  // CHECK: %[[SCALE:.*]] = train.read @"optimizer::loss_scale"
  // CHECK: %[[WIDE:.*]] = train.cast %[[SCALE]] to f64
  // CHECK: %[[FINITE:.*]] = train.less_equal %[[NORM]],
  // CHECK: train.div %[[NORM]], %[[WIDE]]
  // CHECK: %[[FACTOR:.*]] = train.div %{{.*}}, %[[WIDE]]
  // CHECK: %[[GUARDED:.*]] = train.select %[[FINITE]], %[[FACTOR]],
  // CHECK: train.sgd {{.*}} clip %[[GUARDED]]
  // CHECK-NOT: train.increment
  // CHECK: train.store %[[SCALE]] into @loss_scale
  // CHECK: %[[LEFT:.*]] = train.read @"optimizer::loss_scale_hysteresis"
  // CHECK: %[[SHRINKS:.*]] = train.less_equal %[[LEFT]],
  // CHECK: %[[HALVED:.*]] = train.mul %[[SCALE]],
  // CHECK: %[[BOUNDED:.*]] = train.max %[[HALVED]],
  // CHECK: %[[LOWER:.*]] = train.select %[[SHRINKS]], %[[BOUNDED]], %[[SCALE]]
  // CHECK: %[[HIGHER:.*]] = train.select %{{.*}}, %{{.*}}, %[[SCALE]]
  // CHECK: train.select %{{.*}}, %{{.*}}, %[[LEFT]]
  // CHECK: %[[NEXT:.*]] = train.select %[[FINITE]], %[[HIGHER]], %[[LOWER]]
  // CHECK: train.store %[[NEXT]] into @"optimizer::loss_scale"
  // CHECK: train.store %{{.*}} into @"optimizer::loss_scale_clean_steps"
  // CHECK: train.store %{{.*}} into @"optimizer::loss_scale_hysteresis"
  // CHECK: train.store %{{.*}} into @skipped

  // With consecutive hysteresis every step without an overflow restores all of it.
  // EACH: %[[ALL:.*]] = train.constant dense<3> : tensor<i64>
  // EACH: train.select %{{.*}}, %[[ALL]], %{{.*}} : (tensor<i1>, tensor<i64>
  // EACH-NEXT: train.store %{{.*}} into @"optimizer::loss_scale_hysteresis"
  %step = train.read @"optimizer::step" : tensor<i64>
  %rate = train.learning_rate "constant" %step {lr = 0.5} : (tensor<i64>) -> tensor<f64>
  %g = train.read @"w::gradient" : tensor<3xf32>
  %s = train.block_sum_squares %g : (tensor<3xf32>) -> tensor<1xf64>
  %norm = train.global_norm %s : (tensor<1xf64>) -> tensor<f64>
  %clip = train.constant dense<1.0> : tensor<f64>
  train.sgd @w gradient @"w::gradient" rate %rate step %step clip %clip {momentum = 0.0, weight_decay = 0.0, nesterov = false} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  train.increment @"optimizer::step"
  return
}
