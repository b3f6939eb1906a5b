// RUN: ds-opt %s --ds-peel-backward | FileCheck %s

// Tests that the last call of the backward is of a copy, whose buffers of one call are its own; sums and what the forward left are
// shared. The evaluation, which has no backward, stays.
// CHECK-LABEL: plan.role @r
// CHECK:         %[[SUM:[a-z0-9]+]] = plan.buffer "sum"
// CHECK:         %[[KEPT:[a-z0-9]+]] = plan.buffer "kept"
// CHECK:         %[[X:[a-z0-9]+]] = plan.buffer "x"
// CHECK:         plan.routine @backward phase backward stage 0 {
// CHECK-NEXT:      plan.kernel "relu" {}(%[[KEPT]], %[[X]])
// CHECK-NEXT:      plan.kernel "add" {}(%[[X]], %[[SUM]])
// CHECK:         %[[OWN:[a-z0-9]+]] = plan.buffer "x"
// CHECK-NEXT:    plan.routine @backward_last phase backward stage 0 {
// CHECK-NEXT:      plan.kernel "relu" {}(%[[KEPT]], %[[OWN]])
// CHECK-NEXT:      plan.kernel "add" {}(%[[OWN]], %[[SUM]])
// CHECK:         plan.program "step" {
// CHECK-NEXT:      plan.call @forward microbatch 0
// CHECK-NEXT:      plan.call @backward microbatch 0
// CHECK-NEXT:      plan.call @forward microbatch 1
// CHECK-NEXT:      plan.call @backward_last microbatch 1
// CHECK-NEXT:      plan.call @update microbatch 1
plan.role @r ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %sum = plan.buffer "sum" in @device bytes 64 scope step category gradients slots 1
  %kept = plan.buffer "kept" in @device bytes 64 scope slot category activations slots 1
  %x = plan.buffer "x" in @device bytes 64 scope call category activations slots 1
  plan.routine @forward phase forward stage 0 {
    plan.kernel "relu" {}(%kept, %kept) : [tensor<16xf32>, tensor<16xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.routine @backward phase backward stage 0 {
    plan.kernel "relu" {}(%kept, %x) : [tensor<16xf32>, tensor<16xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "add" {}(%x, %sum) : [tensor<16xf32>, tensor<16xf32>] access [1, 3] at [0, 0] on @compute
  }
  plan.routine @update phase update {
  }
  plan.program "step" {
    plan.call @forward microbatch 0
    plan.call @backward microbatch 0
    plan.call @forward microbatch 1
    plan.call @backward microbatch 1
    plan.call @update microbatch 1
  }
  plan.program "evaluate" {
    plan.call @forward microbatch 0
  }
}
