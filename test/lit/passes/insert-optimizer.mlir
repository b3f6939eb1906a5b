// RUN: ds-opt %s --ds-insert-optimizer="optimizer=adamw lr=0.5 clip=1 weight-decay=0.25" | FileCheck %s
// RUN: ds-opt %s --ds-insert-optimizer="optimizer=sgd momentum=0.5 microbatches=4" | FileCheck %s --check-prefix=SGD
// RUN: ds-opt %s --ds-insert-optimizer="optimizer=sgd lr=0.5 schedule=WarmupLR schedule-parameters={warmup_max_lr = 0.25, warmup_num_steps = 10, warmup_type = \"linear\"}" | FileCheck %s --check-prefix=PLAIN
// RUN: ds-opt %s --ds-insert-optimizer="optimizer=adamw schedule=OneCycle schedule-parameters={cycle_min_lr = 0.1} momentum-parameters={cycle_min_mom = 0.5}" | FileCheck %s --check-prefix=CYCLE
// RUN: ds-opt %s --ds-insert-optimizer="optimizer=lion beta1=0.5" | FileCheck %s --check-prefix=LION
// RUN: ds-opt %s --ds-insert-optimizer="optimizer=lamb beta1=0.5 max-coeff=2.0 min-coeff=0.25 bias-correction=true" | FileCheck %s --check-prefix=LAMB
// RUN: ds-opt %s --ds-insert-optimizer="optimizer=adagrad lr-decay=0.5" | FileCheck %s --check-prefix=ADAGRAD

train.variable parameter @w : tensor<3xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"w::gradient" of @w : tensor<3xf32>
train.variable parameter @frozen : tensor<3xf32> from #train.fill<0.0>
train.variable parameter @b : tensor<2xf64> from #train.fill<0.0> {trainable}
train.variable gradient @"b::gradient" of @b : tensor<2xf64>
train.variable metric @loss : tensor<f32>
func.func @microbatch() {
  return
}

// Tests AdamW: the state is named after its parameter, the norm adds the gradients in the order of the parameters, and the
// counter is increased once all updates have read it.
// CHECK-DAG: train.variable optimizer @"optimizer::step" : tensor<i64> from #train.fill<0.000000e+00 : f64>
// CHECK-DAG: train.variable optimizer @"w::exp_avg" of @w : tensor<3xf32> from #train.fill<0.000000e+00 : f64>
// CHECK-DAG: train.variable optimizer @"w::exp_avg_sq" of @w : tensor<3xf32>
// CHECK-DAG: train.variable optimizer @"b::exp_avg" of @b : tensor<2xf64>
// CHECK-DAG: train.variable metric @grad_norm : tensor<f64>
// CHECK-DAG: train.variable metric @lr : tensor<f64>
// CHECK-LABEL: func.func @update()
// CHECK-NOT:   @frozen
// CHECK: %[[STEP:.*]] = train.read @"optimizer::step"
// CHECK: %[[RATE:.*]] = train.learning_rate "constant" %[[STEP]] {lr = 5.000000e-01 : f64}
// CHECK: %[[GW:.*]] = train.read @"w::gradient"
// CHECK: %[[PW:.*]] = train.block_sum_squares %[[GW]]
// CHECK: %[[GB:.*]] = train.read @"b::gradient"
// CHECK: %[[PB:.*]] = train.block_sum_squares %[[GB]]
// CHECK: %[[NORM:.*]] = train.global_norm %[[PW]], %[[PB]]
// CHECK: %[[CLIP:.*]] = train.clip_factor %[[NORM]] max 1.000000e+00
// CHECK: train.adamw @w gradient @"w::gradient" moments @"w::exp_avg", @"w::exp_avg_sq" rate %[[RATE]] step %[[STEP]] clip %[[CLIP]] {{.*}}weight_decay = 2.500000e-01
// CHECK: train.adamw @b gradient @"b::gradient" moments @"b::exp_avg", @"b::exp_avg_sq"
// CHECK: train.increment @"optimizer::step"
// CHECK: train.store %[[NORM]] into @grad_norm
// CHECK: train.store %[[RATE]] into @lr
// CHECK-NOT: @loss
// CHECK: return

// Tests SGD with momentum, without clipping, and that the loss of four micro-batches is their mean.
// SGD-LABEL: func.func @update()
// SGD: %[[ONE:.*]] = train.constant dense<1.000000e+00> : tensor<f64>
// SGD: train.sgd @w gradient @"w::gradient" momentum @"w::momentum_buffer" rate %{{.*}} step %{{.*}} clip %[[ONE]]
// SGD: %[[SUM:.*]] = train.read @loss
// SGD: %[[FOUR:.*]] = train.constant dense<4.000000e+00> : tensor<f32>
// SGD: %[[MEAN:.*]] = train.div %[[SUM]], %[[FOUR]]
// SGD: train.store %[[MEAN]] into @loss

// Tests that SGD without momentum has no state, and that the schedule's parameters are passed on.
// PLAIN-NOT:   momentum_buffer
// PLAIN-LABEL: func.func @update()
// PLAIN: train.learning_rate "WarmupLR" %{{.*}} {warmup_max_lr = 2.500000e-01 : f64, warmup_num_steps = 10 : i64, warmup_type = "linear"}
// PLAIN: train.sgd @w gradient @"w::gradient" rate

// Tests that every update takes the momentum that OneCycle sets.
// CYCLE: train.learning_rate "OneCycle" %[[STEP:.*]] {cycle_min_lr = 1.000000e-01 : f64}
// CYCLE: %[[MOMENTUM:.*]] = train.cycled_momentum %[[STEP]] {cycle_min_mom = 5.000000e-01 : f64}
// CYCLE: train.adamw @w {{.*}} clip %{{.*}} momentum %[[MOMENTUM]]
// CYCLE: train.adamw @b {{.*}} clip %{{.*}} momentum %[[MOMENTUM]]

// Tests Lion: one moment a parameter.
// LION-DAG: train.variable optimizer @"w::exp_avg" of @w : tensor<3xf32> from #train.fill<0.000000e+00 : f64>
// LION-LABEL: func.func @update()
// LION: train.lion @w gradient @"w::gradient" moment @"w::exp_avg" rate %{{.*}} step %{{.*}} clip %{{.*}}beta1 = 5.000000e-01
// LION: train.lion @b gradient @"b::gradient" moment @"b::exp_avg"

// Tests Lamb: two moments a parameter, and the bounds of its trust ratio.
// LAMB-DAG: train.variable optimizer @"w::exp_avg" of @w : tensor<3xf32> from #train.fill<0.000000e+00 : f64>
// LAMB-DAG: train.variable optimizer @"w::exp_avg_sq" of @w : tensor<3xf32> from #train.fill<0.000000e+00 : f64>
// LAMB-LABEL: func.func @update()
// LAMB: train.lamb @w gradient @"w::gradient" moments @"w::exp_avg", @"w::exp_avg_sq" rate %{{.*}} step %{{.*}} clip %{{.*}}beta1 = 5.000000e-01{{.*}}bias_correction = true{{.*}}max_coeff = 2.000000e+00 : f64, min_coeff = 2.500000e-01
// LAMB: train.lamb @b gradient @"b::gradient" moments @"b::exp_avg", @"b::exp_avg_sq"

// Tests Adagrad: one sum of squares a parameter.
// ADAGRAD-DAG: train.variable optimizer @"w::sum" of @w : tensor<3xf32> from #train.fill<0.000000e+00 : f64>
// ADAGRAD-LABEL: func.func @update()
// ADAGRAD: train.adagrad @w gradient @"w::gradient" sum @"w::sum" rate %{{.*}} step %{{.*}} clip %{{.*}}lr_decay = 5.000000e-01
// ADAGRAD: train.adagrad @b gradient @"b::gradient" sum @"b::sum"
