// RUN: ds-opt %s --ds-offload-gradients=least-bytes=64 | FileCheck %s
// RUN: ds-opt %s "--ds-offload-gradients=least-bytes=64 space=nvme" | FileCheck %s --check-prefix=NVME
// RUN: ds-opt %s --ds-offload-gradients=least-bytes=64 --ds-offload-optimizer=least-bytes=64 --ds-run-on-host --ds-order-queues | FileCheck %s --check-prefix=QUEUES

// Tests what leaves: gradients of updates that the host will make, in their own type; not those of small state, nor what a
// message carries.
// CHECK-LABEL: plan.role @r
// CHECK:         plan.arena @host space host
// CHECK-DAG:     %[[SUM:.*]] = plan.buffer "sum" in @host bytes 64 scope step category gradients
// CHECK-DAG:     %[[ONCE:.*]] = plan.buffer "once" in @host bytes 64 scope step category gradients
// CHECK-DAG:     %[[SLICE:.*]] = plan.buffer "slice" in @host bytes 64 scope step category gradients
// CHECK-DAG:     plan.buffer "small" in @device bytes 64 scope step category gradients
// CHECK-DAG:     plan.buffer "sent" in @device bytes 64 scope step category gradients

// Tests that sums of several calls begin with zeros where they lie, and those of one call in device memory.
// CHECK:         plan.routine @begin
// CHECK-NEXT:      plan.fill(%[[SUM]])
// CHECK-NEXT:      plan.fill(%[[SLICE]])
// CHECK-NEXT:    }

// Tests that an addition stays as it is, that a reduction onto the owner's slice has it brought and takes it back when it
// is done, and that commands which touch the same bytes share a buffer: two contributions and their sum over the ranks, of
// which the rank's own slice leaves. Its squares for the norm are taken there.
// CHECK:         plan.routine @backward
// CHECK-NEXT:      plan.kernel "elementwise" {}(%[[SUM]], %{{.*}}, %[[SUM]])
// CHECK-NEXT:      plan.copy(%[[SLICE]], %[[NS:[a-z0-9]+]]) :
// CHECK-NEXT:      plan.collective reduce_scatter accumulate(%{{.*}}, %[[NS]], %{{.*}})
// CHECK-NEXT:      plan.await
// CHECK-NEXT:      plan.copy(%[[NS]], %[[SLICE]]) :
// CHECK-NEXT:    }
// CHECK:         plan.routine @last
// CHECK-NEXT:      plan.fill(%[[NO:[a-z0-9]+]]) : [tensor<8xf32>] access [2] at [0]
// CHECK-NEXT:      plan.kernel "elementwise" {}(%[[NO]], %{{.*}}, %[[NO]]) : {{.*}} at [0, 0, 0]
// CHECK-NEXT:      plan.fill(%[[NO]]) : [tensor<8xf32>] access [2] at [32]
// CHECK-NEXT:      plan.kernel "elementwise" {}(%[[NO]], %{{.*}}, %[[NO]]) : {{.*}} at [32, 0, 32]
// CHECK-NEXT:      plan.collective reduce_scatter(%[[NO]], %[[NO]], %{{.*}}) : {{.*}} stride [0, 32, 0] over @data_ranks
// CHECK-NEXT:      plan.copy(%[[NO]], %[[ONCE]]) : [tensor<8xf32>, tensor<8xf32>] access [1, 2] at [0, 0] stride [32, 32] over @data_ranks
// CHECK-NEXT:      plan.kernel "block_sum_squares" {}(%[[NO]], %[[PART:[a-z0-9]+]]) : {{.*}} stride [32, 0] over @data_ranks
// CHECK-NEXT:    }
// CHECK:         plan.routine @update
// CHECK-NEXT:      plan.kernel "block_sum_squares" {}(%[[SUM]],
// CHECK-NEXT:      plan.kernel "global_norm" {}(%[[PART]],

// Tests a file: one buffer of zeros for all sums, and copies by way of host memory.
// NVME:        plan.routine @begin
// NVME-NEXT:     plan.fill(%[[ZEROS:[a-z0-9]+]])
// NVME-NEXT:     plan.copy(%[[ZEROS]], %[[SUM:[a-z0-9]+]])
// NVME-NEXT:     plan.copy(%[[ZEROS]], %[[SLICE:[a-z0-9]+]])
// NVME:        plan.routine @backward
// NVME:          plan.copy(%[[SLICE]], %[[IN:[a-z0-9]+]])
// NVME-NEXT:     plan.copy(%[[IN]], %[[NEAR:[a-z0-9]+]])
// NVME:          plan.copy(%[[NEAR]], %[[OUT:[a-z0-9]+]])
// NVME-NEXT:     plan.copy(%[[OUT]], %[[SLICE]])

// Tests the queues: the host zeroes and adds, and the norm's part is taken where the gradient lies.
// QUEUES:      plan.routine @begin
// QUEUES:        plan.fill{{.*}} on @host_compute
// QUEUES:      plan.routine @backward
// QUEUES:        plan.copy{{.*}} on @evict
// QUEUES-NEXT:   plan.kernel "elementwise"{{.*}} on @host_compute
// QUEUES:      plan.routine @update
// QUEUES:        plan.kernel "block_sum_squares"{{.*}} on @host_compute
plan.communicator @data_ranks axes [0]
plan.channel @line axis 0 from 0 to 1
plan.role @r ranks [0, 1] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %w = plan.buffer "w" in @device bytes 256 scope plan category weights slots 1 of @w
  %m = plan.buffer "m" in @device bytes 64 scope plan category optimizer slots 1 of @m
  %n = plan.buffer "n" in @device bytes 32 scope plan category optimizer slots 1 of @n
  %sum = plan.buffer "sum" in @device bytes 64 scope step category gradients slots 1
  %once = plan.buffer "once" in @device bytes 64 scope step category gradients slots 1
  %slice = plan.buffer "slice" in @device bytes 64 scope step category gradients slots 1
  %small = plan.buffer "small" in @device bytes 64 scope step category gradients slots 1
  %sent = plan.buffer "sent" in @device bytes 64 scope step category gradients slots 1
  %x = plan.buffer "x" in @device bytes 128 scope call category activations slots 1
  %squares = plan.buffer "squares" in @device bytes 8 scope call category activations slots 1
  %part = plan.buffer "part" in @device bytes 8 scope call category activations slots 1
  %norm = plan.buffer "norm" in @device bytes 8 scope call category activations slots 1
  plan.routine @begin phase begin {
    plan.fill (%sum) : [tensor<16xf32>] access [2] at [0] on @compute
    plan.fill (%once) : [tensor<16xf32>] access [2] at [0] on @compute
    plan.fill (%slice) : [tensor<16xf32>] access [2] at [0] on @compute
  }
  plan.routine @backward phase backward stage 0 {
    plan.kernel "elementwise" {} (%sum, %x, %sum) : [tensor<16xf32>, tensor<16xf32>, tensor<16xf32>] access [1, 1, 2] at [0, 0, 0] on @compute
    %t = plan.collective reduce_scatter accumulate (%x, %slice, %x) : [tensor<32xf32>, tensor<16xf32>, tensor<16xi8>] access [1, 3, 4] at [0, 0, 0]
        over @data_ranks on @compute -> !plan.token
    plan.await %t
  }
  plan.routine @last phase backward stage 0 {
    plan.kernel "elementwise" {} (%once, %x, %once) : [tensor<8xf32>, tensor<8xf32>, tensor<8xf32>] access [1, 1, 2] at [0, 0, 0] on @compute
    plan.kernel "elementwise" {} (%once, %x, %once) : [tensor<8xf32>, tensor<8xf32>, tensor<8xf32>] access [1, 1, 2] at [32, 0, 32] on @compute
    plan.collective reduce_scatter (%once, %once, %x) : [tensor<16xf32>, tensor<8xf32>, tensor<16xi8>] access [1, 2, 4] at [0, 0, 0]
        stride [0, 32, 0] over @data_ranks on @compute
  }
  plan.routine @update phase update {
    plan.kernel "block_sum_squares" {} (%sum, %squares) : [tensor<16xf32>, tensor<1xf64>] access [1, 2] at [0, 0] on @compute
    plan.kernel "block_sum_squares" {} (%once, %part) : [tensor<8xf32>, tensor<1xf64>] access [1, 2] at [0, 0] stride [32, 0] over @data_ranks on @compute
    plan.kernel "global_norm" {} (%part, %norm) : [tensor<1xf64>, tensor<f64>] access [1, 2] at [0, 0] on @compute
    plan.kernel "sgd" {} (%w, %sum, %m) : [tensor<16xf32>, tensor<16xf32>, tensor<16xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
    plan.kernel "sgd" {} (%w, %once, %m) : [tensor<8xf32>, tensor<8xf32>, tensor<8xf32>] access [3, 1, 3] at [0, 0, 0]
        stride [32, 32, 0] over @data_ranks on @compute
    plan.kernel "sgd" {} (%w, %slice, %m) : [tensor<16xf32>, tensor<16xf32>, tensor<16xf32>] access [3, 1, 3] at [64, 0, 0] on @compute
    plan.kernel "sgd" {} (%w, %small, %n) : [tensor<8xf32>, tensor<8xf32>, tensor<8xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
    plan.kernel "sgd" {} (%w, %sent, %m) : [tensor<16xf32>, tensor<16xf32>, tensor<16xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
    plan.send @line (%sent) : [tensor<16xf32>] access [1] at [0] on @compute
  }
  plan.program "step" {
    plan.call @begin microbatch 0
    plan.call @backward microbatch 0
    plan.call @backward microbatch 1
    plan.call @last microbatch 1
    plan.call @update microbatch 1
  }
}
