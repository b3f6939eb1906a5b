// RUN: ds-opt %s --ds-advance-updates="space=host" --split-input-file | FileCheck %s

// Tests that updates by gradients of the step before follow the copies of their parameters to the device, in the order in which the backward makes
// this step's gradients, and need no links.
// CHECK-LABEL: plan.role @once
plan.role @once ranks [0, 0] {
  plan.arena @device space device
  plan.arena @host space host
  plan.queue @compute kind compute
  // CHECK: %[[A:.*]] = plan.buffer "a"
  %a = plan.buffer "a" in @host bytes 4096 scope plan category weights slots 1 of @a
  // CHECK: %[[B:.*]] = plan.buffer "b"
  %b = plan.buffer "b" in @host bytes 4096 scope plan category weights slots 1 of @b
  %pa = plan.buffer "pa" in @device bytes 4096 scope plan category optimizer slots 1 of @pa
  %pb = plan.buffer "pb" in @device bytes 4096 scope plan category optimizer slots 1 of @pb
  %na = plan.buffer "na" in @device bytes 4096 scope step category communication slots 1
  %nb = plan.buffer "nb" in @device bytes 4096 scope step category communication slots 1
  %ga = plan.buffer "ga" in @device bytes 4096 scope step category gradients slots 1
  %gb = plan.buffer "gb" in @device bytes 4096 scope step category gradients slots 1
  // CHECK: plan.routine @forward
  plan.routine @forward phase forward stage 0 {
    // CHECK-NEXT: plan.copy
    // CHECK-NEXT: plan.copy
    // CHECK-NEXT: "sgd" {}(%[[B]],
    // CHECK-NEXT: "sgd" {}(%[[A]],
    // CHECK-NEXT: "neg"
    plan.copy(%a, %na) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
    plan.copy(%b, %nb) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "neg" {}(%na, %nb) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.routine @backward phase backward stage 0 {
    plan.kernel "neg" {}(%nb, %gb) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "neg" {}(%na, %ga) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
  }
  // CHECK: plan.routine @update
  plan.routine @update phase update {
    // CHECK-NEXT: "elementwise"
    // CHECK-NEXT: "elementwise"
    // CHECK-NOT: "sgd"
    plan.kernel "sgd" {}(%a, %pa) : [tensor<1024xf32>, tensor<1024xf32>] access [3, 1] at [0, 0] on @compute
    plan.kernel "sgd" {}(%b, %pb) : [tensor<1024xf32>, tensor<1024xf32>] access [3, 1] at [0, 0] on @compute
    plan.kernel "elementwise" {constants = array<f64>, program = array<i64: 1, 7, 0, -1, -1>, results = array<i64: 1>}(%ga, %pa) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "elementwise" {constants = array<f64>, program = array<i64: 1, 7, 0, -1, -1>, results = array<i64: 1>}(%gb, %pb) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.program "step" {
    plan.call @forward microbatch 0
    plan.call @backward microbatch 0
    plan.call @update microbatch 0
  }
}

// -----

// Tests that with several micro-batches they stand in a start of their own, in front of the first forward; sums begin with zeros behind them.
// CHECK-LABEL: plan.role @twice
plan.role @twice ranks [0, 0] {
  plan.arena @device space device
  plan.arena @host space host
  plan.queue @compute kind compute
  %a = plan.buffer "a" in @host bytes 4096 scope plan category weights slots 1 of @a
  %pa = plan.buffer "pa" in @device bytes 4096 scope plan category optimizer slots 1 of @pa
  %na = plan.buffer "na" in @device bytes 4096 scope step category communication slots 1
  %ga = plan.buffer "ga" in @device bytes 4096 scope step category gradients slots 1
  plan.routine @start_step phase begin {
    plan.copy(%a, %na) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
  }
  // CHECK: plan.routine @begin_step phase begin {
  // CHECK-NEXT: }
  plan.routine @begin_step phase begin {
    plan.fill(%ga) : [tensor<1024xf32>] access [2] at [0] on @compute
  }
  plan.routine @forward phase forward stage 0 {
    plan.kernel "neg" {}(%na, %na) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.routine @backward phase backward stage 0 {
    plan.kernel "add" {}(%na, %ga) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 3] at [0, 0] on @compute
  }
  plan.routine @update phase update {
    plan.kernel "sgd" {}(%a, %pa) : [tensor<1024xf32>, tensor<1024xf32>] access [3, 1] at [0, 0] on @compute
    plan.kernel "elementwise" {constants = array<f64>, program = array<i64: 1, 7, 0, -1, -1>, results = array<i64: 1>}(%ga, %pa) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
  }
  // CHECK: plan.routine @start_forward phase begin {
  // CHECK-NEXT: "sgd"
  // CHECK-NEXT: plan.fill
  // CHECK-NEXT: }
  // CHECK: plan.program "step"
  // CHECK-NEXT: plan.call @start_step microbatch 1
  // CHECK-NEXT: plan.call @begin_step microbatch 0
  // CHECK-NEXT: plan.call @start_forward microbatch 1
  // CHECK-NEXT: plan.call @forward microbatch 0
  plan.program "step" {
    plan.call @start_step microbatch 1
    plan.call @begin_step microbatch 0
    plan.call @forward microbatch 0
    plan.call @backward microbatch 0
    plan.call @forward microbatch 1
    plan.call @backward microbatch 1
    plan.call @update microbatch 1
  }
}
