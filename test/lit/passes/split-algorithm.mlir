// RUN: ds-opt %s --ds-split-algorithm | FileCheck %s
// RUN: ds-opt %s --ds-simplify-pipeline --ds-infer-input-limits --ds-verify-train-form --ds-distribute-pipeline=schedule=1f1b --ds-plan-pipeline

train.variable parameter @w : tensor<3xf32> from #train.fill<0.0> {trainable}
train.variable optimizer @T : tensor<i64> from #train.fill<0.0>
train.variable optimizer @old : tensor<3xf32> from #train.fill<0.0>
train.variable optimizer @seen : tensor<f32> from #train.fill<0.0>

// Tests that the forward pass, without what only updates need, is followed by the backward pass, and that what the update
// needs of both is kept.
// CHECK-LABEL: func.func @microbatch
// CHECK:      %[[W:.*]] = train.read @w
// CHECK-NEXT: %[[P:.*]] = train.mul %[[W]], %arg0
// CHECK-NEXT: %[[D:.*]] = train.dropout %[[P]]
// CHECK-NEXT: %[[LOSS:.*]] = train.reduce_sum %[[D]]
// CHECK-NEXT: train.accumulate %[[LOSS]] into @loss
// CHECK-NEXT: train.loss_gradient 1.000000e+00
// CHECK:      %[[G:.*]] = train.mul %{{.*}}, %arg0
// CHECK-NEXT: train.store %[[G]] into @"w::derivative"
// CHECK-NEXT: train.store %[[LOSS]] into @"step::value"
// CHECK-NEXT: return

// Tests that evaluation is the forward pass alone.
// CHECK-LABEL: func.func @evaluate
// CHECK-NEXT: train.read @w
// CHECK-NEXT: train.mul
// CHECK-NEXT: %[[E:.*]] = train.reduce_sum
// CHECK-NEXT: train.accumulate %[[E]] into @loss
// CHECK-NEXT: return

// Tests that what depends on no input is computed in the update, all of it from values before the first store.
// CHECK: train.variable gradient @"w::derivative" : tensor<3xf32>
// CHECK: train.variable gradient @"step::value" : tensor<f32>
// CHECK-LABEL: func.func @update()
// CHECK-DAG:  %[[W:.*]] = train.read @w
// CHECK-DAG:  %[[G:.*]] = train.read @"w::derivative"
// CHECK-DAG:  %[[T:.*]] = train.read @T
// CHECK-DAG:  %[[LOSS:.*]] = train.read @"step::value"
// CHECK:      %[[NEW:.*]] = train.sub %[[W]], %[[G]]
// CHECK-NEXT: train.store %[[NEW]] into @w
// CHECK-NOT:  train.read @w :
// CHECK:      train.store %[[W]] into @old
// CHECK:      train.store %[[LOSS]] into @seen
// CHECK:      %[[NORM:.*]] = train.global_norm
// CHECK-NEXT: train.store %[[NORM]] into @grad_norm
func.func @forward(%x: tensor<3xf32> {train.input = "x"}) -> tensor<f32> attributes {train.algorithm} {
  %w = train.read @w : tensor<3xf32>
  %p = train.mul %w, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %d = train.dropout %p ratio 0.5 id 0 : (tensor<3xf32>) -> tensor<3xf32>
  %loss = train.reduce_sum %d over [0] : (tensor<3xf32>) -> tensor<f32>
  %g = train.gradient %loss, %w : (tensor<f32>, tensor<3xf32>) -> tensor<3xf32>
  %t = train.read @T : tensor<i64>
  %one = train.constant dense<1> : tensor<i64>
  %next = train.add %t, %one : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %new = train.sub %w, %g : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  train.store %new into @w : tensor<3xf32>
  train.store %next into @T : tensor<i64>
  train.store %w into @old : tensor<3xf32>
  train.store %loss into @seen : tensor<f32>
  return %loss : tensor<f32>
}
