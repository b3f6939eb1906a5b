// RUN: ds-opt %s --ds-differentiate | FileCheck %s

// @average: an evaluation reads what is there. @count: it computes with what it makes of it. Neither is stored there, and
// no gradient passes what is stored.

train.variable parameter @w : tensor<3xf32> from #train.fill<1.0> {trainable}
train.variable buffer @average : tensor<3xf32> from #train.fill<1.0> {persistent}
train.variable buffer @count : tensor<f32> from #train.fill<0.0>

// CHECK-LABEL: func.func @microbatch
// CHECK: %[[OLD:.*]] = train.read @average
// CHECK: %[[NEW:.*]] = train.mul %[[OLD]]
// CHECK-NEXT: train.store %[[NEW]] into @average : tensor<3xf32>
// CHECK: %[[NEXT:.*]] = train.add
// CHECK-NEXT: train.store %[[NEXT]] into @count : tensor<f32>
// CHECK: train.mul %{{.*}}, %[[NEW]]
// CHECK-NOT: train.select
// CHECK: train.loss_gradient
func.func @forward(%x: tensor<3xf32>) -> tensor<f32> {
  %w = train.read @w : tensor<3xf32>
  %old = train.read @average : tensor<3xf32>
  %h = train.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %made = train.mul %old, %h : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %new = train.cast %made to f32 {train.stop_gradient} : (tensor<3xf32>) -> tensor<3xf32>
  train.store %new into @average {train.kept_in_evaluation} : tensor<3xf32>
  %count = train.read @count : tensor<f32>
  %one = train.constant dense<1.0> : tensor<f32>
  %next = train.add %count, %one : (tensor<f32>, tensor<f32>) -> tensor<f32>
  train.store %next into @count : tensor<f32>
  %scaled = train.mul %h, %new : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %counted = train.mul %scaled, %next : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %mode = train.constant dense<true> : tensor<i1>
  %chosen = train.select %mode, %counted, %h {train.by_mode} : (tensor<i1>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %both = train.add %chosen, %counted : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %loss = train.reduce_sum %both over [0] : (tensor<3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
// CHECK-LABEL: func.func @evaluate
// CHECK-NOT: train.store
// CHECK: %[[H:.*]] = train.mul
// CHECK: %[[KEPT:.*]] = train.read @average
// CHECK: %[[COUNT:.*]] = train.read @count
// CHECK: %[[COMPUTED:.*]] = train.add %[[COUNT]]
// CHECK: train.mul %[[H]], %[[KEPT]]
// CHECK: train.mul %{{.*}}, %[[COMPUTED]]
// CHECK-NOT: train.select
// CHECK: train.add %[[H]]
// CHECK-NOT: train.store
// CHECK: return
