// RUN: ds-opt %s --ds-verify-plan-form | FileCheck %s

// Tests a finished plan: what one routine writes another reads, in the order of the calls.
// CHECK-LABEL: plan.role @main
train.variable parameter @w : tensor<16xf32> from #train.fill<0.0>
dist.mesh @mesh ["data"] [1]
module @reference {
}
plan.role @main ranks [0, 0] {
  plan.arena @device space device bytes 192 peak 192
  plan.queue @compute kind compute
  %w = plan.buffer "w" in @device bytes 64 scope plan category weights slots 1 of @w at 0
  %h = plan.buffer "h" in @device bytes 64 scope slot category activations slots 1 at 64
  %g = plan.buffer "g" in @device bytes 64 scope step category gradients slots 1 at 128
  plan.routine @backward phase backward stage 0 {
    plan.kernel "transpose" {} (%h, %g) : [tensor<16xf32>, tensor<16xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.routine @forward phase forward stage 0 {
    plan.kernel "transpose" {} (%w, %h) : [tensor<16xf32>, tensor<16xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.program "step" {
    plan.call @forward microbatch 0
    plan.call @backward microbatch 0
  }
}
