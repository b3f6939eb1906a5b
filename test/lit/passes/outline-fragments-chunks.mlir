// RUN: ds-opt %s --ds-declare-mesh=pipe=2 --ds-outline-fragments | FileCheck %s

// Tests that a value goes to a rank once, with the message of the first of its stages that reads it: stages 1 and 3 are rank 1's, and both
// read what stage 0 computes, in a step and in an evaluation.
// CHECK-NOT:   "forward::0-3"
// CHECK-LABEL: dist.fragment @"forward::0" phase forward stage 0 {
// CHECK-COUNT-1: dist.send %{{.*}} on @"forward::0-1"
// CHECK-NOT:     dist.send
// CHECK-LABEL: dist.fragment @"receive::forward::1" phase receive stage 1 for @"forward::1" {
// CHECK-NEXT:    dist.receive [@first] on @"forward::0-1"
// CHECK-NEXT:  }
// CHECK-LABEL: dist.fragment @"receive::forward::3" phase receive stage 3 for @"forward::3" {
// CHECK-NEXT:    dist.receive [@third] on @"forward::2-3"
// CHECK-NEXT:  }
// CHECK-LABEL: dist.fragment @"forward::3" phase forward stage 3 {
// CHECK-DAG:     dist.load @first
// CHECK-DAG:     dist.load @third
// CHECK-NOT:   "evaluate::0-3"
// CHECK-LABEL: dist.fragment @"receive::evaluate::1" phase receive stage 1 for @"evaluate::1" {
// CHECK-NEXT:    dist.receive [@[[FIRST:.*]]] on @"evaluate::0-1"
// CHECK-NEXT:  }
// CHECK-LABEL: dist.fragment @"receive::evaluate::3" phase receive stage 3 for @"evaluate::3" {
// CHECK-NEXT:    dist.receive [@[[THIRD:.*]]] on @"evaluate::2-3"
// CHECK-NEXT:  }
// CHECK-LABEL: dist.fragment @"evaluate::3" phase evaluate stage 3 {
// CHECK-DAG:     dist.load @[[FIRST]]
// CHECK-DAG:     dist.load @[[THIRD]]
train.variable metric @loss : tensor<f32>
func.func @microbatch(%x: tensor<4xf32> {train.input = "x"}) {
  %0 = train.exp %x {dist.pipeline_stage = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32> loc("first")
  %1 = train.exp %0 {dist.pipeline_stage = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32> loc("second")
  %2 = train.exp %1 {dist.pipeline_stage = 2 : i64} : (tensor<4xf32>) -> tensor<4xf32> loc("third")
  %3 = train.mul %0, %2 {dist.pipeline_stage = 3 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = train.reduce_sum %3 over [0] {dist.pipeline_stage = 3 : i64} : (tensor<4xf32>) -> tensor<f32>
  train.accumulate %4 into @loss {dist.pipeline_stage = 3 : i64} : tensor<f32>
  return
}
func.func @update() {
  return
}
func.func @evaluate(%x: tensor<4xf32> {train.input = "x"}) {
  %0 = train.exp %x {dist.pipeline_stage = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = train.exp %0 {dist.pipeline_stage = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = train.exp %1 {dist.pipeline_stage = 2 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %3 = train.mul %0, %2 {dist.pipeline_stage = 3 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = train.reduce_sum %3 over [0] {dist.pipeline_stage = 3 : i64} : (tensor<4xf32>) -> tensor<f32>
  train.accumulate %4 into @loss {dist.pipeline_stage = 3 : i64} : tensor<f32>
  return
}
