// RUN: ds-opt %s --ds-offload-gradients=least-bytes=64 | FileCheck %s

// Tests that what would not be away by the end of the backward leaves in the update, behind the first update of the host, and that
// its own update is the last one. Here a gradient takes 0.1 s, and 0.05 s are left when the second is computed.
// CHECK:      %[[EARLY:.*]] = plan.buffer "early" in @host
// CHECK:      %[[LATE:.*]] = plan.buffer "late" in @host
// CHECK-DAG:  %[[NE:.*]] = plan.buffer "early" in @device bytes 4000000 scope call
// CHECK-DAG:  %[[NL:.*]] = plan.buffer "late" in @device bytes 4000000 scope step
// CHECK:      plan.routine @backward
// CHECK-NEXT:   plan.kernel "neg" {}(%{{.*}}, %[[NE]])
// CHECK-NEXT:   plan.copy(%[[NE]], %[[EARLY]])
// CHECK-NEXT:   plan.kernel "matmul"
// CHECK-NEXT:   plan.kernel "neg" {}(%{{.*}}, %[[NL]])
// CHECK-NEXT: }
// CHECK:      plan.routine @update
// CHECK-NEXT:   plan.kernel "sgd" {}(%{{.*}}, %[[EARLY]], %{{.*}})
// CHECK-NEXT:   plan.copy(%[[NL]], %[[LATE]])
// CHECK-NEXT:   plan.kernel "sgd" {}(%{{.*}}, %[[LATE]], %{{.*}})
module attributes {dist.links = {"device-host" = array<f64: 4.0e7, 0.0>}} {
plan.role @r ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %w = plan.buffer "w" in @device bytes 8000000 scope plan category weights slots 1 of @w
  %m = plan.buffer "m" in @device bytes 4000000 scope plan category optimizer slots 1 of @m
  %n = plan.buffer "n" in @device bytes 4000000 scope plan category optimizer slots 1 of @n
  %early = plan.buffer "early" in @device bytes 4000000 scope step category gradients slots 1
  %late = plan.buffer "late" in @device bytes 4000000 scope step category gradients slots 1
  %x = plan.buffer "x" in @device bytes 4000000 scope call category activations slots 1
  %a = plan.buffer "a" in @device bytes 64000000 scope call category activations slots 1
  plan.routine @backward phase backward stage 0 {
    plan.kernel "neg" {} (%x, %early) : [tensor<1000000xf32>, tensor<1000000xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "matmul" {bias = 0 : i64, pieces = 1 : i64, trans_a = 0 : i64, trans_b = 0 : i64} (%a, %a, %a) : [tensor<4000x4000xf32>, tensor<4000x4000xf32>, tensor<4000x4000xf32>] access [1, 1, 2] at [0, 0, 0] on @compute
    plan.kernel "neg" {} (%x, %late) : [tensor<1000000xf32>, tensor<1000000xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.routine @update phase update {
    plan.kernel "sgd" {} (%w, %late, %m) : [tensor<1000000xf32>, tensor<1000000xf32>, tensor<1000000xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
    plan.kernel "sgd" {} (%w, %early, %n) : [tensor<1000000xf32>, tensor<1000000xf32>, tensor<1000000xf32>] access [3, 1, 3] at [4000000, 0, 0] on @compute
  }
}
}
