// RUN: ds-opt %s | ds-opt | FileCheck %s

train.variable parameter @w : tensor<16xf32> from #train.fill<0.0>

// Tests everything that a role owns.
// CHECK-LABEL: plan.role @main ranks [0, 3] {
plan.role @main ranks [0, 3] {
  // CHECK-NEXT: plan.arena @device space device bytes 1024 peak 960
  plan.arena @device space device bytes 1024 peak 960
  // CHECK-NEXT: plan.arena @host space host
  plan.arena @host space host
  // CHECK-NEXT: plan.queue @compute kind compute
  plan.queue @compute kind compute
  // CHECK-NEXT: plan.queue @copy_in kind copy_in
  plan.queue @copy_in kind copy_in
  // CHECK-NEXT: plan.event @input_ready
  plan.event @input_ready
  // CHECK-NEXT: %[[W:.*]] = plan.buffer "w" in @device bytes 64 scope plan category weights slots 1 of @w at 0
  %w = plan.buffer "w" in @device bytes 64 scope plan category weights slots 1 of @w at 0
  // CHECK-NEXT: %[[X:.*]] = plan.buffer "x" in @device bytes 64 scope slot category inputs slots 2 at 64 then [128] lives [0, 0, 0, 1, 0]
  %x = plan.buffer "x" in @device bytes 64 scope slot category inputs slots 2 at 64 then [128] lives [0, 0, 0, 1, 0]
  // CHECK-NEXT: %[[L:.*]] = plan.buffer "loss" in @device bytes 4 scope step category optimizer slots 1
  %l = plan.buffer "loss" in @device bytes 4 scope step category optimizer slots 1
  // CHECK: plan.routine @feed phase feed stage 0 {
  plan.routine @feed phase feed stage 0 {
    // CHECK-NEXT: plan.feed "x"(%[[X]]) : [tensor<16xf32>] access [2] at [0] on @copy_in wait [@input_ready] [2] signal [@input_ready]
    plan.feed "x" (%x) : [tensor<16xf32>] access [2] at [0] on @copy_in wait [@input_ready] [2] signal [@input_ready]
  }
  // CHECK: plan.routine @forward phase forward stage 0 {
  plan.routine @forward phase forward stage 0 {
    // CHECK-NEXT: plan.fill(%[[L]]) : [tensor<f32>] access [2] at [0] on @compute
    plan.fill (%l) : [tensor<f32>] access [2] at [0] on @compute
    // CHECK-NEXT: plan.copy(%[[W]], %[[X]]) : [tensor<16xf32>, tensor<16xf32>] access [1, 2] at [0, 0] on @compute
    plan.copy (%w, %x) : [tensor<16xf32>, tensor<16xf32>] access [1, 2] at [0, 0] on @compute
    // CHECK-NEXT: plan.kernel "reduce_sum" {axes = array<i64: 0>}(%[[X]], %[[L]]) : [tensor<16xf32>, tensor<f32>] access [1, 2] at [0, 0] on @compute wait [@input_ready] [0] reference [3, 4]
    plan.kernel "reduce_sum" {axes = array<i64: 0>} (%x, %l) : [tensor<16xf32>, tensor<f32>] access [1, 2] at [0, 0] on @compute wait [@input_ready] [0] reference [3, 4]
  }
  // CHECK: plan.program "step" {
  plan.program "step" {
    // CHECK-NEXT: plan.call @feed microbatch 0
    plan.call @feed microbatch 0
    // CHECK-NEXT: plan.call @forward microbatch 0
    plan.call @forward microbatch 0
    // CHECK-NEXT: plan.metric "loss" %[[L]] : tensor<f32>
    plan.metric "loss" %l : tensor<f32>
  }  // CHECK: plan.program "evaluate" captured {
  plan.program "evaluate" captured {
  }
}
