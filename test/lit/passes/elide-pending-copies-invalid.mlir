// This pass has no error of its own; here is what it must leave alone.
// RUN: ds-opt %s --ds-elide-pending-copies | FileCheck %s

// Tests which copies must stay: an update reads the old gradient when the new one is there already, or they lie in different memories.
// CHECK-LABEL: plan.role @late
plan.role @late ranks [0, 0] {
  plan.arena @host space host
  plan.queue @compute kind compute
  %w = plan.buffer "w" in @host bytes 4096 scope plan category weights slots 1 of @w
  %p = plan.buffer "p" in @host bytes 4096 scope plan category optimizer slots 1 of @p
  %g = plan.buffer "g" in @host bytes 4096 scope step category gradients slots 1
  plan.routine @backward phase backward stage 0 {
    plan.kernel "neg" {}(%w, %g) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.routine @update phase update {
    plan.kernel "sgd" {}(%w, %p) : [tensor<1024xf32>, tensor<1024xf32>] access [3, 1] at [0, 0] on @compute
    // CHECK: "elementwise"
    plan.kernel "elementwise" {constants = array<f64>, program = array<i64: 1, 7, 0, -1, -1>, results = array<i64: 1>}(%g, %p) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.program "step" {
    plan.call @backward microbatch 0
    plan.call @update microbatch 0
  }
}

// CHECK-LABEL: plan.role @apart
plan.role @apart ranks [1, 1] {
  plan.arena @device space device
  plan.arena @host space host
  plan.queue @compute kind compute
  %w = plan.buffer "w" in @host bytes 4096 scope plan category weights slots 1 of @w
  %p = plan.buffer "p" in @host bytes 4096 scope plan category optimizer slots 1 of @p
  %g = plan.buffer "g" in @device bytes 4096 scope step category gradients slots 1
  plan.routine @forward phase forward stage 0 {
    plan.kernel "sgd" {}(%w, %p) : [tensor<1024xf32>, tensor<1024xf32>] access [3, 1] at [0, 0] on @compute
  }
  plan.routine @update phase update {
    // CHECK: "elementwise"
    plan.kernel "elementwise" {constants = array<f64>, program = array<i64: 1, 7, 0, -1, -1>, results = array<i64: 1>}(%g, %p) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.program "step" {
    plan.call @forward microbatch 0
    plan.call @update microbatch 0
  }
}
