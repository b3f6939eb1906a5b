// RUN: ds-opt %s --ds-verify-plan-form --split-input-file --verify-diagnostics

// expected-error @+1 {{op is left over; ds-allocate-buffers should have lowered it}}
dist.fragment @forward phase forward stage 0 {
}

// -----

module {
  // expected-error @+1 {{op is left over; ds-allocate-buffers should have lowered it}}
  module @other {
  }
}

// -----

plan.input "x" : tensor<4xf32>
// expected-error @+1 {{op "x" stands twice}}
plan.input "x" : tensor<4xf32>

// -----

plan.input "x" : tensor<4xf32>
plan.role @main ranks [0, 0] {
  plan.arena @device space device bytes 16 peak 16
  plan.queue @copy_in kind copy_in
  %y = plan.buffer "y" in @device bytes 16 scope call category inputs slots 1 at 0
  plan.routine @feed phase feed stage 0 {
    // expected-error @+1 {{op feeds "y", which no plan.input declares}}
    plan.feed "y" (%y) : [tensor<4xf32>] access [2] at [0] on @copy_in
  }
}

// -----

plan.role @main ranks [0, 0] {
  plan.arena @device space device bytes 64 peak 64
  // expected-error @+1 {{op "a" has no offset; ds-assign-offsets gives it one}}
  %a = plan.buffer "a" in @device bytes 64 scope call category activations slots 1
}

// -----

plan.role @main ranks [0, 0] {
  // expected-note @+1 {{the arena}}
  plan.arena @device space device bytes 128 peak 64
  // 2 slots of 64 from 64 on
  // expected-error @+1 {{op "a" ends at 192, past its arena's 128 bytes}}
  %a = plan.buffer "a" in @device bytes 64 scope slot category activations slots 2 at 64 then [128]
}

// -----

plan.role @main ranks [0, 0] {
  plan.arena @device space device bytes 64 peak 64
  plan.queue @compute kind compute
  // expected-note @+1 {{the buffer}}
  %a = plan.buffer "a" in @device bytes 64 scope call category activations slots 1 at 0
  plan.routine @forward phase forward stage 0 {
    plan.fill (%a) : [tensor<16xf32>] access [2] at [0] on @compute
  }
  plan.routine @backward phase backward stage 0 {
    // What another call wrote into its scratch is gone.
    // expected-error @+1 {{op reads "a", which nothing has written}}
    plan.kernel "exp" {} (%a) : [tensor<16xf32>] access [1] at [0] on @compute
  }
  plan.program "step" {
    plan.call @forward microbatch 0
    plan.call @backward microbatch 0
  }
}

// -----

plan.role @main ranks [0, 0] {
  plan.arena @device space device bytes 64 peak 64
  plan.queue @compute kind compute
  // expected-note @+1 {{the buffer}}
  %a = plan.buffer "a" in @device bytes 64 scope call category activations slots 1 at 0
  plan.routine @forward phase forward stage 0 {
    // Scratch leaves nothing to read.
    plan.kernel "matmul" {} (%a) : [tensor<16xf32>] access [4] at [0] on @compute
    // expected-error @+1 {{op reads "a", which nothing has written}}
    plan.kernel "increment" {} (%a) : [tensor<16xf32>] access [3] at [0] on @compute
  }
  plan.program "step" {
    plan.call @forward microbatch 0
  }
}

// -----

plan.communicator @data_ranks axes [0]
plan.role @main ranks [0, 3] {
  plan.arena @device space device bytes 128 peak 64
  plan.queue @compute kind compute
  %own = plan.buffer "own" in @device bytes 16 scope step category weights slots 1 at 0
  %all = plan.buffer "all" in @device bytes 64 scope call category communication slots 1 at 64
  plan.routine @forward phase forward stage 0 {
    %t = plan.collective all_gather(%own, %all) : [tensor<4xf32>, tensor<16xf32>] access [1, 2] at [0, 0] over @data_ranks on @compute -> !plan.token
    // expected-error @+1 {{op is left over; ds-order-queues should have made it an event}}
    plan.await %t
  }
}
