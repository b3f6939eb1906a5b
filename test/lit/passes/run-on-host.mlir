// RUN: ds-opt %s --ds-run-on-host | FileCheck %s
// RUN: ds-opt %s --ds-run-on-host --ds-order-queues | FileCheck %s --check-prefix=QUEUES

// Tests that a kernel runs on the host if one of its operands lies there: what else it reads is copied to the host, a scalar's
// copy made once, and what it writes is copied back. One that names device memory alone stays.
// CHECK-LABEL: plan.routine @update
// CHECK-NEXT:    plan.copy(%[[G:[a-z0-9]+]], %[[HG:.*]]) : [tensor<16xf32>, tensor<16xf32>] access [1, 2] at [0, 0] on @compute
// CHECK-NEXT:    plan.copy(%[[RATE:[a-z0-9]+]], %[[HR:.*]]) : [tensor<f64>, tensor<f64>]
// CHECK-NEXT:    plan.kernel "sgd" {}(%[[W:[a-z0-9]+]], %[[HG]], %[[HR]])
// CHECK-NEXT:    plan.copy(%[[Y:[a-z0-9]+]], %[[HY:.*]]) : [tensor<16xf32>, tensor<16xf32>] access [1, 2] at [64, 0] on @compute
// CHECK-NEXT:    plan.kernel "sgd" {}(%[[HY]], %[[W]], %[[HR]])
// CHECK-NEXT:    plan.copy(%[[HY]], %[[Y]]) : [tensor<16xf32>, tensor<16xf32>] access [1, 2] at [0, 64] on @compute
// CHECK-NEXT:    plan.kernel "neg" {}(%[[G]], %[[Y]])

// QUEUES-LABEL: plan.routine @update
// QUEUES:         plan.copy{{.*}} on @evict
// QUEUES:         plan.kernel "sgd"{{.*}} on @host_compute
// QUEUES:         plan.kernel "sgd"{{.*}} on @host_compute
// QUEUES:         plan.copy{{.*}} on @fetch
// QUEUES:         plan.kernel "neg"{{.*}} on @compute
plan.role @r ranks [0, 0] {
  plan.arena @device space device
  plan.arena @host space host
  plan.queue @compute kind compute
  %w = plan.buffer "w" in @host bytes 64 scope plan category weights slots 1 of @w
  %g = plan.buffer "g" in @device bytes 64 scope step category gradients slots 1
  %y = plan.buffer "y" in @device bytes 128 scope step category gradients slots 1
  %rate = plan.buffer "rate" in @device bytes 8 scope step category activations slots 1
  plan.routine @update phase update {
    plan.kernel "sgd" {} (%w, %g, %rate) : [tensor<16xf32>, tensor<16xf32>, tensor<f64>] access [3, 1, 1] at [0, 0, 0] on @compute
    plan.kernel "sgd" {} (%y, %w, %rate) : [tensor<16xf32>, tensor<16xf32>, tensor<f64>] access [3, 1, 1] at [64, 0, 0] on @compute
    plan.kernel "neg" {} (%g, %y) : [tensor<16xf32>, tensor<16xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.program "step" {
    plan.call @update microbatch 0
  }
}
