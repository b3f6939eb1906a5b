// RUN: ds-opt %s --ds-offload-parameters="least-bytes=64 host-updates" --ds-advance-updates=least-bytes=64 --ds-offload-gradients=least-bytes=64 --ds-offload-optimizer=least-bytes=64 --ds-run-on-host | FileCheck %s
// RUN: ds-opt %s --ds-offload-parameters="least-bytes=64 host-updates" --ds-advance-updates=least-bytes=64 --ds-offload-gradients=least-bytes=64 --ds-offload-optimizer=least-bytes=64 --ds-run-on-host --ds-order-queues | FileCheck %s --check-prefix=QUEUES
// RUN: ds-opt %s "--ds-advance-updates=least-bytes=64 space=nvme" "--ds-offload-gradients=least-bytes=64 space=nvme" "--ds-offload-optimizer=least-bytes=64 space=nvme" --ds-run-on-host | FileCheck %s --check-prefix=NVME

// Tests two layers that two micro-batches go through one after another: what a layer reads comes once for both, in the start before the
// layer in front of it, and v for the forward and the backward, which follow each other; a gradient is summed on the device from zeros
// of the start before its layer, leaves in the start behind it, and is updated there.
// CHECK:       %[[W:.*]] = plan.buffer "w" in @host
// CHECK:       %[[W0:.*]] = plan.buffer "w" in @device bytes 4000 scope step
// CHECK:       %[[W1:.*]] = plan.buffer "w" in @device bytes 4000 scope step
// CHECK:       plan.routine @"forward::0"
// CHECK-NEXT:    plan.kernel "neg" {}(%[[W1]],
// CHECK:       plan.routine @"forward::1"
// CHECK-NEXT:    plan.kernel "neg" {}(%[[V0:.*]], %{{.*}})
// CHECK:       plan.routine @"backward::1"
// CHECK-NEXT:    plan.kernel "elementwise" {}(%[[H:.*]], %[[V0]], %[[H]])
// CHECK:       plan.routine @"backward::0"
// CHECK-NEXT:    plan.kernel "elementwise" {}(%[[G:.*]], %[[W0]], %[[G]])
// CHECK:       plan.routine @begin_step
// CHECK-NEXT:  }
// CHECK:       plan.routine @start_step phase begin
// CHECK-NEXT:    plan.copy(%[[W]], %[[W1]])
// CHECK-NEXT:    plan.copy(%{{.*}}, %[[V0]])
// CHECK-NEXT:  }
// CHECK:       plan.routine @"start_backward::1" phase begin
// CHECK-NEXT:    plan.copy(%[[W]], %[[W0]])
// CHECK-NEXT:    plan.fill(%[[H]])
// CHECK-NEXT:  }
// CHECK:       plan.routine @"start_backward::0" phase begin
// CHECK-NEXT:    plan.copy(%[[H]], %[[H_AWAY:.*]])
// CHECK-NEXT:    plan.kernel "sgd" {}(%{{.*}}, %[[H_AWAY]],
// CHECK-NEXT:    plan.fill(%[[G]])
// CHECK-NEXT:  }
// CHECK:       plan.routine @start_update phase begin
// CHECK-NEXT:    plan.copy(%[[G]], %[[G_AWAY:.*]])
// CHECK-NEXT:    plan.kernel "sgd" {}(%[[W]], %[[G_AWAY]],
// CHECK-NEXT:  }
// CHECK:       plan.program "step" {
// CHECK-NEXT:    plan.call @start_step microbatch 1
// CHECK-NEXT:    plan.call @begin_step microbatch 0
// CHECK-NEXT:    plan.call @"forward::0" microbatch 0
// CHECK-NEXT:    plan.call @"forward::0" microbatch 1
// CHECK-NEXT:    plan.call @"forward::1" microbatch 0
// CHECK-NEXT:    plan.call @"forward::1" microbatch 1
// CHECK-NEXT:    plan.call @"start_backward::1" microbatch 1
// CHECK-NEXT:    plan.call @"backward::1" microbatch 0
// CHECK-NEXT:    plan.call @"backward::1" microbatch 1
// CHECK-NEXT:    plan.call @"start_backward::0" microbatch 1
// CHECK-NEXT:    plan.call @"backward::0" microbatch 0
// CHECK-NEXT:    plan.call @"backward::0" microbatch 1
// CHECK-NEXT:    plan.call @start_update microbatch 1
// CHECK-NEXT:    plan.call @update microbatch 1

// Tests that a layer waits for what came for it, that compute waits two starts later for what a start has issued, and the update for
// all that is left.
// QUEUES:      plan.routine @"forward::0"
// QUEUES-NEXT:   plan.kernel "neg" {{.*}} on @compute wait [@[[W_HERE:done_[0-9]+]]] [0]
// QUEUES:      plan.routine @update
// QUEUES-NEXT:   plan.fill{{.*}} on @compute wait [{{.*}}@[[UPDATED:done_[0-9]+]]] [0
// QUEUES:      plan.routine @start_step
// QUEUES-NEXT:   plan.fill{{.*}} on @compute signal [@[[READY:ready_[0-9]+]]]
// QUEUES-NEXT:   plan.copy{{.*}} on @fetch wait [@[[READY]]] [0] signal [@[[W_HERE]]]
// QUEUES:      plan.routine @"start_backward::0"
// QUEUES-NEXT:   plan.fill{{.*}}tensor<0xi8>
// QUEUES-NEXT:   plan.copy{{.*}} on @evict {{.*}} signal [@[[LEFT:done_[0-9]+]]]
// QUEUES-NEXT:   plan.kernel "sgd" {{.*}} on @host_compute wait [{{.*}}@[[LEFT]]] {{.*}} signal [@done_
// QUEUES:      plan.routine @start_update
// QUEUES:        plan.kernel "sgd" {{.*}} on @host_compute {{.*}} signal [@[[UPDATED]]]

// Tests that state is read from a file one start before its update, beside the layer whose gradient that waits for.
// NVME:        plan.routine @"start_backward::0" phase begin
// NVME:          plan.kernel "sgd" {}(%{{.*}}, %{{.*}}, %[[STATE:[0-9]+]])
// NVME:        plan.routine @"start_backward::1" phase begin
// NVME-NEXT:     plan.fill
// NVME-NEXT:     plan.copy(%{{.*}}, %[[STATE]]) : [tensor<1000xf32>
module attributes {dist.links = {"device-host" = array<f64: 1.0e9, 0.0>, "host-nvme" = array<f64: 1.0e9, 0.0>}} {
plan.role @r ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %w = plan.buffer "w" in @device bytes 4000 scope plan category weights slots 1 of @w
  %v = plan.buffer "v" in @device bytes 4000 scope plan category weights slots 1 of @v
  %m = plan.buffer "m" in @device bytes 4000 scope plan category optimizer slots 1 of @m
  %n = plan.buffer "n" in @device bytes 4000 scope plan category optimizer slots 1 of @n
  %g = plan.buffer "g" in @device bytes 4000 scope step category gradients slots 1
  %h = plan.buffer "h" in @device bytes 4000 scope step category gradients slots 1
  %x = plan.buffer "x" in @device bytes 4000 scope slot category activations slots 1
  plan.routine @"forward::0" phase forward stage 0 {
    plan.kernel "neg" {} (%w, %x) : [tensor<1000xf32>, tensor<1000xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.routine @"forward::1" phase forward stage 1 {
    plan.kernel "neg" {} (%v, %x) : [tensor<1000xf32>, tensor<1000xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.routine @"backward::1" phase backward stage 1 {
    plan.kernel "elementwise" {} (%h, %v, %h) : [tensor<1000xf32>, tensor<1000xf32>, tensor<1000xf32>] access [1, 1, 2] at [0, 0, 0] on @compute
  }
  plan.routine @"backward::0" phase backward stage 0 {
    plan.kernel "elementwise" {} (%g, %w, %g) : [tensor<1000xf32>, tensor<1000xf32>, tensor<1000xf32>] access [1, 1, 2] at [0, 0, 0] on @compute
  }
  plan.routine @update phase update {
    plan.kernel "sgd" {} (%w, %g, %m) : [tensor<1000xf32>, tensor<1000xf32>, tensor<1000xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
    plan.kernel "sgd" {} (%v, %h, %n) : [tensor<1000xf32>, tensor<1000xf32>, tensor<1000xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
  }
  plan.routine @begin_step phase begin {
    plan.fill (%g) : [tensor<1000xf32>] access [2] at [0] on @compute
    plan.fill (%h) : [tensor<1000xf32>] access [2] at [0] on @compute
  }
  plan.program "step" {
    plan.call @begin_step microbatch 0
    plan.call @"forward::0" microbatch 0
    plan.call @"forward::0" microbatch 1
    plan.call @"forward::1" microbatch 0
    plan.call @"forward::1" microbatch 1
    plan.call @"backward::1" microbatch 0
    plan.call @"backward::1" microbatch 1
    plan.call @"backward::0" microbatch 0
    plan.call @"backward::0" microbatch 1
    plan.call @update microbatch 1
  }
}
}
