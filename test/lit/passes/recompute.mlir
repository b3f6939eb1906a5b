// RUN: ds-opt %s --ds-recompute --split-input-file | FileCheck %s

// Tests that what is marked is made again in front of its first reader in the backward, once, with what it needs that is marked too and
// a reshape on the way; that what is not marked is kept; that the forward stays and loses its marks.
// CHECK-LABEL: func.func @microbatch
// CHECK:         %[[E:.*]] = train.exp %[[X:.*]] : (
// CHECK:         %[[S:.*]] = train.sqrt %[[E]] : (
// CHECK:         %[[L:.*]] = train.log %{{.*}} : (
// CHECK:         %[[G:.*]] = train.loss_gradient
// CHECK:         %[[B:.*]] = train.broadcast %[[G]]
// CHECK-NEXT:    %[[E2:.*]] = train.exp %[[X]] {train.recomputed}
// CHECK-NEXT:    %[[S2:.*]] = train.sqrt %[[E2]] {train.recomputed}
// CHECK-NEXT:    %[[R2:.*]] = train.reshape %[[S2]] to [2, 2] {train.recomputed}
// CHECK-NEXT:    %[[M:.*]] = train.mul %[[B]], %[[R2]] : (
// CHECK-NEXT:    train.mul %[[M]], %[[L]] : (
// CHECK-NEXT:    train.mul %{{.*}}, %[[R2]] : (
train.variable metric @loss : tensor<2x2xf32>
func.func @microbatch(%x: tensor<4xf32> {train.input = "x"}) {
  %0 = train.exp %x {train.recompute} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = train.sqrt %0 {train.recompute} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = train.reshape %1 to [2, 2] : (tensor<4xf32>) -> tensor<2x2xf32>
  %3 = train.log %2 : (tensor<2x2xf32>) -> tensor<2x2xf32>
  train.accumulate %3 into @loss : tensor<2x2xf32>
  %g = train.loss_gradient 1.0 : tensor<f32>
  %4 = train.broadcast %g to [2, 2] : (tensor<f32>) -> tensor<2x2xf32>
  %5 = train.mul %4, %2 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %6 = train.mul %5, %3 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %7 = train.mul %6, %2 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  train.accumulate %7 into @loss : tensor<2x2xf32>
  return
}

// -----

// Tests that dropout draws the same mask again, and that what another stage computes is kept.
// CHECK-LABEL: func.func @microbatch
// CHECK:         %[[E:.*]] = train.exp %{{.*}} {dist.pipeline_stage = 0 : i64}
// CHECK:         train.dropout %[[E]] {{.*}}
// CHECK:         train.loss_gradient
// CHECK-NOT:     train.exp
// CHECK:         train.dropout %[[E]] {{.*}}train.recomputed
// CHECK-NOT:     train.exp
train.variable metric @loss : tensor<4xf32>
func.func @microbatch(%x: tensor<4xf32> {train.input = "x"}) {
  %0 = train.exp %x {dist.pipeline_stage = 0 : i64, train.recompute} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = train.dropout %0 ratio 0.5 id 3 {dist.pipeline_stage = 1 : i64, train.recompute} : (tensor<4xf32>) -> tensor<4xf32>
  train.accumulate %1 into @loss {dist.pipeline_stage = 1 : i64} : tensor<4xf32>
  %g = train.loss_gradient 1.0 : tensor<f32>
  %2 = train.mul %g, %1 {dist.pipeline_stage = 1 : i64} : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  train.accumulate %2 into @loss {dist.pipeline_stage = 1 : i64} : tensor<4xf32>
  return
}
