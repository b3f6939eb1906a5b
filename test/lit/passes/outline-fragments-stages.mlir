// RUN: ds-opt %s --ds-declare-mesh=pipe=2 --ds-outline-fragments | FileCheck %s
// RUN: ds-opt %s --ds-declare-mesh=pipe=2 --ds-outline-fragments=split-weights | FileCheck %s --check-prefix=WEIGHTS

// Tests that each stage feeds the inputs that it needs, computes what has no stage for itself, keeps what its backward needs, and sends
// what the other stage's rank needs, once; that each rank updates its own parameters and reads all gradients for the norm.
// CHECK-LABEL: dist.fragment @"feed::0" phase feed stage 0 {
// CHECK-NEXT:    dist.feed @"x::0"
// CHECK-NEXT:  }
// CHECK-LABEL: dist.fragment @"feed::1" phase feed stage 1 {
// CHECK-NEXT:    dist.feed @"y::1"
// CHECK-NEXT:  }
// CHECK:       dist.value @first : tensor<4xf32>
// CHECK:       dist.channel @"forward::0-1" axis "pipe" from 0 to 1
// CHECK:       dist.channel @"backward::1-0" axis "pipe" from 1 to 0
// CHECK-LABEL: dist.fragment @"forward::0" phase forward stage 0 {
// CHECK:         %[[F:.*]] = train.mul
// CHECK-NEXT:    dist.store %[[F]] as @first
// CHECK-NEXT:    dist.send %[[F]] on @"forward::0-1"
// CHECK-NEXT:  }
// CHECK-LABEL: dist.fragment @"receive::forward::1" phase receive stage 1 for @"forward::1" {
// CHECK-NEXT:    dist.receive [@first] on @"forward::0-1"
// CHECK-NEXT:  }
// CHECK-LABEL: dist.fragment @"forward::1" phase forward stage 1 {
// CHECK-DAG:     dist.load @first
// CHECK-DAG:     dist.load @"y::1"
// CHECK:         train.exp
// CHECK:         train.accumulate %{{.*}} into @loss
// CHECK-NEXT:  }
// CHECK-LABEL: dist.fragment @"backward::1" phase backward stage 1 {
// CHECK:         dist.load @first
// CHECK:         train.accumulate %{{.*}} into @"v::gradient"
// CHECK-NEXT:    dist.send %{{.*}} on @"backward::1-0"
// CHECK-NEXT:  }
// CHECK-LABEL: dist.fragment @"receive::backward::0" phase receive stage 0 for @"backward::0" {
// CHECK-LABEL: dist.fragment @"backward::0" phase backward stage 0 {
// CHECK:         dist.load @"x::0"
// CHECK:         train.accumulate %{{.*}} into @"w::gradient"
// CHECK-NEXT:  }
// CHECK-LABEL: dist.fragment @"update::0" phase update pipe 0 {
// CHECK:         train.read @"v::gradient"
// CHECK:         train.sgd @w
// CHECK-NOT:     train.sgd @v
// CHECK-NOT:     into @loss
// CHECK-LABEL: dist.fragment @"update::1" phase update pipe 1 {
// CHECK-NOT:     train.sgd @w
// CHECK:         train.sgd @v
// CHECK:         train.store %{{.*}} into @loss
// CHECK-LABEL: dist.fragment @"evaluate::0" phase evaluate stage 0 {
// CHECK:         dist.send %{{.*}} on @"evaluate::0-1"
// CHECK-LABEL: dist.fragment @"receive::evaluate::1" phase receive stage 1 for @"evaluate::1" {
// CHECK-LABEL: dist.fragment @"evaluate::1" phase evaluate stage 1 {

// What only a parameter's gradient needs runs by itself, and what is sent does not wait for it.
// WEIGHTS-LABEL: dist.fragment @"backward::1" phase backward stage 1 {
// WEIGHTS-NOT:     train.accumulate
// WEIGHTS:         dist.store %{{.*}} as @second
// WEIGHTS:         dist.send %{{.*}} on @"backward::1-0"
// WEIGHTS-LABEL: dist.fragment @"weight::1" phase weight stage 1 {
// WEIGHTS-DAG:     dist.load @second
// WEIGHTS-DAG:     dist.load @first
// WEIGHTS:         train.accumulate %{{.*}} into @"v::gradient"
// WEIGHTS-LABEL: dist.fragment @"weight::0" phase weight stage 0 {
// WEIGHTS:         train.accumulate %{{.*}} into @"w::gradient"
train.variable parameter @w : tensor<4xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"w::gradient" of @w : tensor<4xf32>
train.variable parameter @v : tensor<4xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"v::gradient" of @v : tensor<4xf32>
train.variable optimizer @"optimizer::step" : tensor<i64> from #train.fill<0.0>
train.variable metric @loss : tensor<f32>
func.func @microbatch(%x: tensor<4xf32> {train.input = "x"}, %y: tensor<4xf32> {train.input = "y"}) {
  %w = train.read @w : tensor<4xf32>
  %v = train.read @v : tensor<4xf32>
  %scale = train.exp %y : (tensor<4xf32>) -> tensor<4xf32>
  %0 = train.mul %x, %w {dist.pipeline_stage = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("first")
  %1 = train.mul %0, %v {dist.pipeline_stage = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = train.mul %1, %scale {dist.pipeline_stage = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = train.reduce_sum %2 over [0] {dist.pipeline_stage = 1 : i64} : (tensor<4xf32>) -> tensor<f32>
  train.accumulate %3 into @loss {dist.pipeline_stage = 1 : i64} : tensor<f32>
  %g = train.loss_gradient 0.5 {dist.pipeline_stage = 1 : i64} : tensor<f32>
  %4 = train.mul %scale, %g {dist.pipeline_stage = 1 : i64} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> loc("second")
  %5 = train.mul %4, %0 {dist.pipeline_stage = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %6 = train.mul %4, %v {dist.pipeline_stage = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  train.accumulate %5 into @"v::gradient" {dist.pipeline_stage = 1 : i64} : tensor<4xf32>
  %7 = train.mul %6, %x {dist.pipeline_stage = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  train.accumulate %7 into @"w::gradient" {dist.pipeline_stage = 0 : i64} : tensor<4xf32>
  return
}
func.func @update() {
  %step = train.read @"optimizer::step" : tensor<i64>
  %rate = train.constant dense<0.1> : tensor<f64>
  %a = train.read @"w::gradient" : tensor<4xf32>
  %0 = train.block_sum_squares %a : (tensor<4xf32>) -> tensor<1xf64>
  %b = train.read @"v::gradient" : tensor<4xf32>
  %1 = train.block_sum_squares %b : (tensor<4xf32>) -> tensor<1xf64>
  %norm = train.global_norm %0, %1 : (tensor<1xf64>, tensor<1xf64>) -> tensor<f64>
  %clip = train.clip_factor %norm max 1.0 : (tensor<f64>) -> tensor<f64>
  train.sgd @w gradient @"w::gradient" rate %rate step %step clip %clip {momentum = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  train.sgd @v gradient @"v::gradient" rate %rate step %step clip %clip {momentum = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  train.increment @"optimizer::step"
  %sum = train.read @loss : tensor<f32>
  %mean = train.exp %sum : (tensor<f32>) -> tensor<f32>
  train.store %mean into @loss : tensor<f32>
  return
}
func.func @evaluate(%x: tensor<4xf32> {train.input = "x"}, %y: tensor<4xf32> {train.input = "y"}) {
  %w = train.read @w : tensor<4xf32>
  %v = train.read @v : tensor<4xf32>
  %0 = train.mul %x, %w {dist.pipeline_stage = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("first")
  %1 = train.mul %0, %v {dist.pipeline_stage = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = train.reduce_sum %1 over [0] {dist.pipeline_stage = 1 : i64} : (tensor<4xf32>) -> tensor<f32>
  train.accumulate %2 into @loss {dist.pipeline_stage = 1 : i64} : tensor<f32>
  return
}
