// RUN: ds-opt %s --ds-assign-offsets=alignment=64 --ds-order-for-memory=alignment=64 --split-input-file | FileCheck %s

// Tests that what takes bytes away comes first, and large temporaries apart: "big" is done with before "small" is made into
// "other", whose reader is the last command. 1024 + 512 bytes at once become 1024 + 64.
// CHECK-LABEL: plan.role @early
// CHECK-NEXT:  plan.arena @device space device bytes 1088 peak 1088
// CHECK:       plan.routine @forward
// CHECK-NEXT:    plan.kernel "first"
// CHECK-NEXT:    plan.kernel "reader"
// CHECK-NEXT:    plan.kernel "second"
// CHECK-NEXT:    plan.kernel "last"
plan.role @early ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %big = plan.buffer "big" in @device bytes 1024 scope call category activations slots 1
  %sum = plan.buffer "sum" in @device bytes 64 scope call category activations slots 1
  %other = plan.buffer "other" in @device bytes 512 scope call category activations slots 1
  plan.routine @forward phase forward stage 0 {
    plan.kernel "first" {} (%big) : [tensor<256xf32>] access [2] at [0] on @compute
    plan.kernel "second" {} (%other) : [tensor<128xf32>] access [2] at [0] on @compute
    plan.kernel "reader" {} (%big, %sum) : [tensor<256xf32>, tensor<16xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "last" {} (%other, %sum) : [tensor<128xf32>, tensor<16xf32>] access [1, 1] at [0, 0] on @compute
  }
  plan.program "step" {
    plan.call @forward microbatch 0
  }
}

// -----

// Tests that an order stays where bytes are written twice: "first" must not write what "second" still reads, though its
// reader could take "big" away earlier; additions into "sum" keep their order.
// CHECK-LABEL: plan.role @same_bytes
// CHECK:         plan.kernel "first"
// CHECK-NEXT:    plan.kernel "second"
// CHECK-NEXT:    plan.kernel "third"
// CHECK-NEXT:    plan.kernel "fourth"
plan.role @same_bytes ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %sum = plan.buffer "sum" in @device bytes 64 scope plan category gradients slots 1 of @g
  %a = plan.buffer "a" in @device bytes 512 scope call category activations slots 1
  %b = plan.buffer "b" in @device bytes 1024 scope call category activations slots 1
  plan.routine @forward phase forward stage 0 {
    plan.kernel "first" {} (%a) : [tensor<128xf32>] access [2] at [0] on @compute
    plan.kernel "second" {} (%b, %sum) : [tensor<256xf32>, tensor<16xf32>] access [2, 3] at [0, 0] on @compute
    plan.kernel "third" {} (%a, %sum) : [tensor<128xf32>, tensor<16xf32>] access [1, 3] at [0, 0] on @compute
    plan.kernel "fourth" {} (%b, %sum) : [tensor<256xf32>, tensor<16xf32>] access [1, 3] at [0, 0] on @compute
  }
  plan.program "step" {
    plan.call @forward microbatch 0
  }
}

// -----

// Tests that nothing passes a command that signals: what waits for it would begin later.
// CHECK-LABEL: plan.role @fence
// CHECK:         plan.kernel "first"
// CHECK-NEXT:    plan.kernel "second"
// CHECK-NEXT:    plan.kernel "reader"
plan.role @fence ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  plan.event @ready
  %big = plan.buffer "big" in @device bytes 1024 scope call category activations slots 1
  %sum = plan.buffer "sum" in @device bytes 64 scope call category activations slots 1
  %other = plan.buffer "other" in @device bytes 512 scope call category activations slots 1
  plan.routine @forward phase forward stage 0 {
    plan.kernel "first" {} (%big) : [tensor<256xf32>] access [2] at [0] on @compute
    plan.kernel "second" {} (%other) : [tensor<128xf32>] access [2] at [0] on @compute signal [@ready]
    plan.kernel "reader" {} (%big, %sum) : [tensor<256xf32>, tensor<16xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "last" {} (%other, %sum) : [tensor<128xf32>, tensor<16xf32>] access [1, 1] at [0, 0] on @compute
  }
  plan.program "step" {
    plan.call @forward microbatch 0
  }
}

// -----

// Tests that bytes apart in one buffer do not hold each other: the parts of a bucket are written in any order.
// CHECK-LABEL: plan.role @parts
// CHECK:         plan.kernel "first"
// CHECK-NEXT:    plan.kernel "reader"
// CHECK-NEXT:    plan.kernel "second"
plan.role @parts ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %big = plan.buffer "big" in @device bytes 1024 scope call category activations slots 1
  %parts = plan.buffer "parts" in @device bytes 128 scope plan category gradients slots 1 of @g
  %other = plan.buffer "other" in @device bytes 512 scope call category activations slots 1
  plan.routine @forward phase forward stage 0 {
    plan.kernel "first" {} (%big) : [tensor<256xf32>] access [2] at [0] on @compute
    plan.kernel "second" {} (%other, %parts) : [tensor<128xf32>, tensor<16xf32>] access [2, 2] at [0, 64] on @compute
    plan.kernel "reader" {} (%big, %parts) : [tensor<256xf32>, tensor<16xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "last" {} (%other) : [tensor<128xf32>] access [1] at [0] on @compute
  }
  plan.program "step" {
    plan.call @forward microbatch 0
  }
}
