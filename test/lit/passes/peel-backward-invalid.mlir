// This pass has no error of its own; here is what it must leave alone.
// RUN: ds-opt %s --ds-peel-backward --split-input-file | FileCheck %s

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
