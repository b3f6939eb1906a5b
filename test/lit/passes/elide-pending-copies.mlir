// RUN: ds-opt %s --ds-elide-pending-copies | FileCheck %s

// Tests that a gradient leaves for the pending one once the update has read that; its squares are taken there.
// CHECK-LABEL: plan.role @r
plan.role @r ranks [0, 0] {
  plan.arena @device space device
  plan.arena @host space host
  plan.queue @compute kind compute
  %w = plan.buffer "w" in @host bytes 4096 scope plan category weights slots 1 of @w
  // CHECK: %[[P:.*]] = plan.buffer "p" in @host
  %p = plan.buffer "p" in @host bytes 4096 scope plan category optimizer slots 1 of @p
  %near = plan.buffer "g" in @device bytes 4096 scope call category communication slots 1
  // CHECK-NOT: category gradients
  %g = plan.buffer "g" in @host bytes 4096 scope step category gradients slots 1
  %s = plan.buffer "s" in @host bytes 8 scope call category activations slots 1
  // CHECK: plan.routine @forward
  plan.routine @forward phase forward stage 0 {
    plan.kernel "sgd" {}(%w, %p) : [tensor<1024xf32>, tensor<1024xf32>] access [3, 1] at [0, 0] on @compute
  }
  // CHECK: plan.routine @backward
  plan.routine @backward phase backward stage 0 {
    // CHECK-NEXT: plan.copy(%{{.*}}, %[[P]])
    plan.copy(%near, %g) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
  }
  // CHECK: plan.routine @update
  plan.routine @update phase update {
    // CHECK-NEXT: "block_sum_squares" {}(%[[P]],
    // CHECK-NEXT: }
    plan.kernel "block_sum_squares" {}(%g, %s) : [tensor<1024xf32>, tensor<1xf64>] access [1, 2] at [0, 0] on @compute
    plan.kernel "elementwise" {constants = array<f64>, program = array<i64: 1, 7, 0, -1, -1>, results = array<i64: 1>}(%g, %p) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.program "step" {
    plan.call @forward microbatch 0
    plan.call @backward microbatch 0
    plan.call @update microbatch 0
  }
}
