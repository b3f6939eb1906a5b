// This pass has no error of its own; here is what it must leave alone.
// RUN: ds-opt %s --ds-order-queues | FileCheck %s

// Tests that a collective without a token stays on the compute queue, which needs no events for it.
// CHECK-LABEL: plan.role @main
// CHECK-NOT:     plan.event
// CHECK-LABEL:   plan.routine @forward
// CHECK-NEXT:      plan.collective all_gather({{.*}}) : [tensor<4xf32>, tensor<16xf32>] access [1, 2] at [0, 0] over @data_ranks on @compute{{$}}
// CHECK-NEXT:      plan.kernel "neg" {{.*}} on @compute{{$}}
plan.communicator @data_ranks axes [0]
plan.role @main ranks [0, 3] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %y = plan.buffer "y" in @device bytes 16 scope call category activations slots 1
  %own = plan.buffer "own" in @device bytes 16 scope step category activations slots 1
  %all = plan.buffer "all" in @device bytes 64 scope call category activations slots 1
  plan.routine @forward phase forward stage 0 {
    plan.collective all_gather(%own, %all) : [tensor<4xf32>, tensor<16xf32>] access [1, 2] at [0, 0] over @data_ranks on @compute
    plan.kernel "neg" {}(%all, %y) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
  }
}
