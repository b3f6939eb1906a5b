// RUN: ds-opt %s --split-input-file --ds-choose-captured-programs=commands=6 | FileCheck %s

// Tests that a step of few commands is captured in every role, and the evaluation stays as it is.
// CHECK-LABEL: plan.role @first
// CHECK:         plan.program "step" captured {
// CHECK:         plan.program "evaluate" {
// CHECK-LABEL: plan.role @second
// CHECK:         plan.program "step" captured {
plan.role @first ranks [0, 0] {
  plan.arena @device space device
  plan.arena @host space host
  plan.queue @compute kind compute
  %b = plan.buffer "b" in @device bytes 4 scope call category activations slots 1
  plan.routine @forward phase forward stage 0 {
    plan.fill(%b) : [tensor<1xf32>] access [2] at [0] on @compute
    plan.fill(%b) : [tensor<1xf32>] access [2] at [0] on @compute
  }
  plan.program "step" {
    plan.call @forward microbatch 0
    plan.call @forward microbatch 1
    plan.call @forward microbatch 2
  }
  plan.program "evaluate" {
    plan.call @forward microbatch 0
  }
}
plan.role @second ranks [1, 1] {
  plan.arena @device space device
  plan.routine @forward phase forward stage 0 {
  }
  plan.program "step" {
    plan.call @forward microbatch 0
  }
}

// -----

// Tests that one role with too many commands, seven, is enough for none of them to be captured.
// CHECK-LABEL: plan.role @few
// CHECK:         plan.program "step" {
// CHECK-LABEL: plan.role @many
// CHECK:         plan.program "step" {
plan.role @few ranks [0, 0] {
  plan.arena @device space device
  plan.routine @forward phase forward stage 0 {
  }
  plan.program "step" {
    plan.call @forward microbatch 0
  }
}
plan.role @many ranks [1, 1] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %b = plan.buffer "b" in @device bytes 4 scope call category activations slots 1
  plan.routine @forward phase forward stage 0 {
    plan.fill(%b) : [tensor<1xf32>] access [2] at [0] on @compute
  }
  plan.program "step" {
    plan.call @forward microbatch 0
    plan.call @forward microbatch 1
    plan.call @forward microbatch 2
    plan.call @forward microbatch 3
    plan.call @forward microbatch 4
    plan.call @forward microbatch 5
    plan.call @forward microbatch 6
  }
}

// -----

// Tests that what a role keeps in a file is no part of a record.
// CHECK-LABEL: plan.role @offloaded
// CHECK:         plan.program "step" {
plan.role @offloaded ranks [0, 0] {
  plan.arena @device space device
  plan.queue @nvme_read kind io
  plan.routine @forward phase forward stage 0 {
  }
  plan.program "step" {
    plan.call @forward microbatch 0
  }
}

// -----

// Tests that what the host computes is no part of a record.
// CHECK-LABEL: plan.role @updated
// CHECK:         plan.program "step" {
plan.role @updated ranks [0, 0] {
  plan.arena @device space device
  plan.queue @host_compute kind host
  plan.routine @forward phase forward stage 0 {
  }
  plan.program "step" {
    plan.call @forward microbatch 0
  }
}

// -----

// Tests that a user's mark stays, on whatever program.
// CHECK-LABEL: plan.role @marked
// CHECK:         plan.program "evaluate" captured {
plan.role @marked ranks [0, 0] {
  plan.arena @device space device
  plan.program "evaluate" captured {
  }
}
