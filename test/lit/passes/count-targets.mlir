// RUN: ds-opt %s --ds-count-targets | FileCheck %s
// RUN: ds-opt %s --ds-count-targets --ds-differentiate --ds-scale-gradients --ds-insert-optimizer="optimizer=sgd clip=1" | FileCheck %s --check-prefix=STEP
// RUN: ds-opt %s --ds-count-targets --ds-differentiate --ds-insert-optimizer="optimizer=sgd microbatches=4" | FileCheck %s --check-prefix=FREE

// Tests that the mean becomes a sum, and labels that are not ignored are counted beside it.
// CHECK:       train.variable metric @targets : tensor<f64>
// CHECK-LABEL: func.func @forward
// CHECK:         %[[LOSS:.*]], %{{.*}} = train.cross_entropy sum %{{.*}}, %arg0 ignore -100
// CHECK-NEXT:    %[[IGNORED:.*]] = train.constant dense<-100> : tensor<i64>
// CHECK-NEXT:    %[[IS:.*]] = train.equal %arg0, %[[IGNORED]]
// CHECK-NEXT:    %[[COUNTS:.*]] = train.not %[[IS]]
// CHECK-NEXT:    %[[ONES:.*]] = train.cast %[[COUNTS]] to f32
// CHECK-NEXT:    %[[SUM:.*]] = train.reduce_sum %[[ONES]] over [0]
// CHECK-NEXT:    %[[TARGETS:.*]] = train.cast %[[SUM]] to f64
// CHECK-NEXT:    train.accumulate %[[TARGETS]] into @targets
// CHECK-NEXT:    return %[[LOSS]]

// Tests that gradients are sums, and that the update divides their norm, them and the loss by the targets, once each. Evaluation has both sums.
// STEP-LABEL: func.func @microbatch
// STEP:         train.accumulate %{{.*}} into @targets
// STEP:         train.accumulate %{{.*}} into @loss
// STEP:         train.loss_gradient 1.000000e+00
// STEP:         train.cross_entropy_grad sum
// STEP-LABEL: func.func @evaluate
// STEP:         train.cross_entropy sum
// STEP:         train.accumulate %{{.*}} into @targets
// STEP:         train.accumulate %{{.*}} into @loss
// STEP-LABEL: func.func @update
// STEP:         %[[SUMS:.*]] = train.global_norm
// STEP-NEXT:    %[[N:.*]] = train.read @targets
// STEP-NEXT:    %[[NORM:.*]] = train.div %[[SUMS]], %[[N]]
// STEP-NEXT:    %[[CLIP:.*]] = train.clip_factor %[[NORM]] max 1.0
// STEP-NEXT:    %[[FACTOR:.*]] = train.div %[[CLIP]], %[[N]]
// STEP-NEXT:    train.sgd @w gradient @"w::gradient" rate %{{.*}} step %{{.*}} clip %[[FACTOR]]
// STEP:         train.store %[[NORM]] into @grad_norm
// STEP:         %[[L:.*]] = train.read @loss
// STEP-NEXT:    %[[C:.*]] = train.cast %[[N]] to f32
// STEP-NEXT:    %[[MEAN:.*]] = train.div %[[L]], %[[C]]
// STEP-NEXT:    train.store %[[MEAN]] into @loss

// Tests that without clipping the factor is one over the targets, and that micro-batches divide nothing.
// FREE-LABEL: func.func @update
// FREE:         %[[N:.*]] = train.read @targets
// FREE:         %[[ONE:.*]] = train.constant dense<1.000000e+00> : tensor<f64>
// FREE-NEXT:    %[[FACTOR:.*]] = train.div %[[ONE]], %[[N]]
// FREE-NEXT:    train.sgd @w gradient @"w::gradient" rate %{{.*}} step %{{.*}} clip %[[FACTOR]]
// FREE-NOT:     4.0
train.variable parameter @w : tensor<4x8xf32> from #train.fill<0.5> {trainable}
func.func @forward(%labels: tensor<4xi64>) -> tensor<f32> {
  %w = train.read @w : tensor<4x8xf32>
  %loss, %lse = train.cross_entropy mean %w, %labels ignore -100 : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>)
  return %loss : tensor<f32>
}
