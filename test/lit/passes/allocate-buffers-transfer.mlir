// RUN: ds-opt %s --ds-select-kernels --ds-allocate-buffers | FileCheck %s

// Tests that a transfer becomes a copy between arenas, and that a role has the arenas that it needs.
// CHECK-LABEL: plan.role @main
// CHECK-NEXT:    plan.arena @device space device
// CHECK-NEXT:    plan.arena @host space host
// CHECK-NOT:     plan.arena
// CHECK:         %[[OUT:.*]] = plan.buffer "dist.transfer" in @host bytes 16 scope call category activations slots 1
// CHECK:         %[[BACK:.*]] = plan.buffer "dist.transfer" in @device bytes 16 scope call category activations slots 1
// CHECK:         plan.routine @forward phase forward stage 0 {
// CHECK:           plan.copy(%{{.*}}, %[[OUT]]) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
// CHECK-NEXT:      plan.copy(%[[OUT]], %[[BACK]]) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
// CHECK-NEXT:      plan.kernel "elementwise"
dist.mesh @mesh ["data"] [1]
train.variable parameter @w : tensor<4xf32> from #train.fill<1.0>
train.variable gradient @sum : tensor<4xf32>
dist.fragment @forward phase forward stage 0 {
  %x = train.read @w : tensor<4xf32>
  %0 = dist.transfer %x from device to host : tensor<4xf32>
  %1 = dist.transfer %0 from host to device : tensor<4xf32>
  %2 = train.exp %1 : (tensor<4xf32>) -> tensor<4xf32>
  train.accumulate %2 into @sum : tensor<4xf32>
}
dist.role @main ranks [0, 0] {
  dist.program @step {
    dist.call @forward microbatch 0
  }
}
