// This pass has no error of its own; here is what it must leave alone.
// RUN: ds-opt %s --ds-run-on-host | FileCheck %s

// Tests that kernels stay that name device memory alone, and copies.
// CHECK:       plan.routine @forward
// CHECK-NEXT:    plan.copy(
// CHECK-NEXT:    plan.kernel "neg" {}(
// CHECK-NEXT:    }
plan.role @r ranks [0, 0] {
  plan.arena @device space device
  plan.arena @host space host
  plan.queue @compute kind compute
  %w = plan.buffer "w" in @host bytes 256 scope plan category weights slots 1 of @w
  %x = plan.buffer "x" in @device bytes 256 scope call category communication slots 1
  %y = plan.buffer "y" in @device bytes 256 scope call category activations slots 1
  plan.routine @forward phase forward stage 0 {
    plan.copy(%w, %x) : [tensor<64xf32>, tensor<64xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "neg" {} (%x, %y) : [tensor<64xf32>, tensor<64xf32>] access [1, 2] at [0, 0] on @compute
  }
}
