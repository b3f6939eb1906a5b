// RUN: ds-opt %s "--ds-offload-parameters=least-bytes=64 for-step" --ds-offload-optimizer=least-bytes=64 --ds-run-on-host | FileCheck %s
// RUN: ds-opt %s "--ds-offload-parameters=least-bytes=64 host-updates" --ds-offload-optimizer=least-bytes=64 --ds-run-on-host | FileCheck %s --check-prefix=EACH
// RUN: ds-opt %s --ds-offload-parameters=least-bytes=64 --ds-run-on-host | FileCheck %s --check-prefix=EACH
// RUN: ds-opt %s "--ds-offload-parameters=least-bytes=64 host-lookups=false" | FileCheck %s --check-prefix=DEVICE
// RUN: ds-opt %s "--ds-offload-parameters=least-bytes=64 for-step" --ds-offload-optimizer=least-bytes=64 --ds-run-on-host --ds-order-queues | FileCheck %s --check-prefix=QUEUES

// Tests that the host looks up few rows of a table that lies there: the indices leave, the rows come, and what is used later comes
// behind them. A lookup of more rows than the table has is the device's.
// CHECK:       %[[W:.*]] = plan.buffer "w" in @host bytes 256 scope plan
// CHECK:       %[[NEAR:.*]] = plan.buffer "w" in @device bytes 256 scope step
// CHECK:       plan.routine @forward
// CHECK-NEXT:    plan.copy(%[[IDS:[a-z0-9]+]], %[[THERE:[a-z0-9]+]])
// CHECK-NEXT:    plan.kernel "gather" {{.*}}(%[[W]], %[[THERE]], %[[ROWS:[a-z0-9]+]])
// CHECK-NEXT:    plan.copy(%[[ROWS]], %[[X:[a-z0-9]+]])
// CHECK-NEXT:    plan.copy(%[[W]], %[[NEAR]])
// CHECK-NEXT:    plan.kernel "gather" {{.*}}(%[[NEAR]],

// Tests the same where parameters come for each command.
// EACH:        plan.routine @forward
// EACH:          plan.kernel "gather" {{.*}}(%[[W:[a-z0-9]+]], %[[THERE:[a-z0-9]+]], %[[ROWS:[a-z0-9]+]])
// EACH-NEXT:     plan.copy(%[[ROWS]], %{{.*}})
// EACH-NEXT:     plan.copy(%[[W]], %[[ALL:[a-z0-9]+]])
// EACH-NEXT:     plan.kernel "gather" {{.*}}(%[[ALL]],

// Tests that the device looks up where no kernel may run on the host.
// DEVICE:      plan.routine @forward
// DEVICE-NEXT:   plan.copy(%[[W:[a-z0-9]+]],
// DEVICE-NEXT:   plan.copy(%[[W]],
// DEVICE-NEXT:   plan.kernel "gather"
// DEVICE-NEXT:   plan.kernel "gather"

// QUEUES:      plan.routine @forward
// QUEUES:        plan.copy{{.*}} on @evict
// QUEUES-NEXT:   plan.kernel "gather"{{.*}} on @host_compute
// QUEUES-NEXT:   plan.copy{{.*}} on @fetch
// QUEUES-NEXT:   plan.copy{{.*}} on @fetch
// QUEUES:        plan.kernel "gather"{{.*}} on @compute
plan.role @r ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %w = plan.buffer "w" in @device bytes 256 scope plan category weights slots 1 of @w
  %m = plan.buffer "m" in @device bytes 256 scope plan category optimizer slots 1 of @m
  %g = plan.buffer "g" in @device bytes 256 scope plan category gradients slots 1 of @g
  %few = plan.buffer "few" in @device bytes 16 scope step category activations slots 1
  %many = plan.buffer "many" in @device bytes 160 scope step category activations slots 1
  %x = plan.buffer "x" in @device bytes 32 scope call category activations slots 1
  %y = plan.buffer "y" in @device bytes 320 scope call category activations slots 1
  plan.routine @forward phase forward stage 0 {
    plan.kernel "gather" {axis = 0 : i64} (%w, %few, %x) : [tensor<16x4xf32>, tensor<2xi64>, tensor<2x4xf32>] access [1, 1, 2] at [0, 0, 0] on @compute
    plan.kernel "gather" {axis = 0 : i64} (%w, %many, %y) : [tensor<16x4xf32>, tensor<20xi64>, tensor<20x4xf32>] access [1, 1, 2] at [0, 0, 0] on @compute
  }
  plan.routine @update phase update {
    plan.kernel "sgd" {} (%w, %g, %m) : [tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x4xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
  }
  plan.program "step" {
    plan.call @forward microbatch 0
    plan.call @update microbatch 0
  }
}
