// This pass has no error of its own; here is what it must leave alone.
// RUN: ds-opt %s --ds-keep-old-state --split-input-file | FileCheck %s

// Tests that nothing changes without a tail.
// CHECK-LABEL: plan.role @without
// CHECK-NOT:     next
// CHECK:         plan.copy(
plan.role @without ranks [0, 0] {
  plan.arena @host space host
  plan.arena @nvme space nvme
  plan.queue @compute kind compute
  %m = plan.buffer "m" in @nvme bytes 4096 scope plan category optimizer slots 1 of @m
  %x = plan.buffer "x" in @host bytes 4096 scope step category communication slots 1
  plan.routine @update phase update {
    plan.copy(%x, %m) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.program "step" {
    plan.call @update microbatch 0
  }
}
