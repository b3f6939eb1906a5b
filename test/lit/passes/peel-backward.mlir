// RUN: ds-opt %s --ds-peel-backward --split-input-file | FileCheck %s

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

// -----

// Tests that a backward of one micro-batch stays, and layers that all micro-batches go through before the next one, and a backward that sends.
// CHECK-LABEL: plan.role @once
// CHECK-NOT:     _last
plan.role @once ranks [0, 0] {
  plan.queue @compute kind compute
  plan.routine @backward phase backward stage 0 {
  }
  plan.program "step" {
    plan.call @backward microbatch 0
  }
}

// -----

// CHECK-LABEL: plan.role @layers
// CHECK-NOT:     _last
plan.role @layers ranks [0, 0] {
  plan.queue @compute kind compute
  plan.routine @forward phase forward stage 0 {
  }
  plan.routine @"forward::1" phase forward stage 1 {
  }
  plan.routine @"backward::1" phase backward stage 1 {
  }
  plan.routine @backward phase backward stage 0 {
  }
  plan.program "step" {
    plan.call @forward microbatch 0
    plan.call @forward microbatch 1
    plan.call @"forward::1" microbatch 0
    plan.call @"forward::1" microbatch 1
    plan.call @"backward::1" microbatch 0
    plan.call @"backward::1" microbatch 1
    plan.call @backward microbatch 0
    plan.call @backward microbatch 1
  }
}

// -----

// CHECK-LABEL: plan.role @sends
// CHECK-NOT:     _last
plan.channel @down axis 0 from 1 to 0
plan.role @sends ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %x = plan.buffer "x" in @device bytes 64 scope slot category activations slots 1
  plan.routine @backward phase backward stage 0 {
    plan.send @down(%x) : [tensor<16xf32>] access [1] at [0] on @compute
  }
  plan.program "step" {
    plan.call @backward microbatch 0
    plan.call @backward microbatch 1
  }
}
