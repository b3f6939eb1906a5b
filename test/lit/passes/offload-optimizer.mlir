// RUN: ds-opt %s --ds-offload-optimizer=least-bytes=64 --ds-run-on-host | FileCheck %s
// RUN: ds-opt %s --ds-offload-optimizer=least-bytes=64 --ds-run-on-host --ds-order-queues | FileCheck %s --check-prefix=QUEUES
// RUN: ds-opt %s "--ds-offload-optimizer=least-bytes=64 space=nvme" --ds-run-on-host --ds-order-queues | FileCheck %s --check-prefix=NVME

// Tests that moments lie in host memory where they are large enough; that their updates read copies there, a scalar's made
// once, a slice's at the place of the rank; and that what is written is copied back.
// CHECK-LABEL: plan.role @r
// CHECK:         plan.arena @device space device
// CHECK-NEXT:    plan.arena @host space host
// CHECK-DAG:     %[[W:.*]] = plan.buffer "w" in @device bytes 256
// CHECK-DAG:     %[[M:.*]] = plan.buffer "m" in @host bytes 128 scope plan category optimizer
// CHECK-DAG:     %[[N:.*]] = plan.buffer "n" in @host bytes 64 scope plan category optimizer
// CHECK-DAG:     %[[SMALL:.*]] = plan.buffer "small" in @device bytes 8 scope plan category optimizer
// CHECK:         plan.routine @update
// CHECK:         plan.copy(%[[W]], %[[HW:.*]]) : [tensor<32xf32>, tensor<32xf32>] access [1, 2] at [0, 0] stride [128, 0] over @data_ranks on @compute
// CHECK-NEXT:    plan.copy(%{{.*}}, %[[RATE:.*]]) : [tensor<f64>, tensor<f64>]
// CHECK-NEXT:    plan.kernel "sgd" {}(%[[HW]], %[[RATE]], %[[M]]) : [tensor<32xf32>, tensor<f64>, tensor<32xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
// CHECK-NEXT:    plan.copy(%[[HW]], %[[W]]) : [tensor<32xf32>, tensor<32xf32>] access [1, 2] at [0, 0] stride [0, 128] over @data_ranks on @compute
// CHECK-NEXT:    plan.copy(%{{.*}}, %[[HV:.*]]) : [tensor<16xf32>, tensor<16xf32>] access [1, 2] at [64, 0] on @compute
// CHECK-NEXT:    plan.kernel "sgd" {}(%[[HV]], %[[RATE]], %[[N]]) :
// CHECK-NEXT:    plan.copy(%[[HV]], %{{.*}}) : [tensor<16xf32>, tensor<16xf32>] access [1, 2] at [0, 64] on @compute
// CHECK-NEXT:    plan.kernel "sgd" {}(%{{.*}}, %{{.*}}, %[[SMALL]]) :

// Tests the queues: an update on the host begins when its operands are there, what it wrote comes back when it is done, and
// compute, at the end of the routine, waits for all that it does not itself use before.
// QUEUES:      plan.queue @fetch kind copy_in
// QUEUES-NEXT: plan.queue @evict kind copy_out
// QUEUES-NEXT: plan.queue @host_compute kind host
// QUEUES:      plan.copy{{.*}} on @evict wait [@ready_0] [0] signal [@[[THERE:[a-z_0-9]+]]]
// QUEUES-NEXT: plan.copy{{.*}} on @evict wait [@ready_0] [0] signal [@[[RATE:[a-z_0-9]+]]]
// QUEUES-NEXT: plan.kernel "sgd"{{.*}} on @host_compute wait [@ready_0, @[[THERE]], @[[RATE]]] [0, 0, 0] signal [@[[DONE:[a-z_0-9]+]]]
// QUEUES-NEXT: plan.copy{{.*}} on @fetch wait [@ready_0, @[[THERE]], @[[DONE]]] [0, 0, 0] signal [@[[BACK:[a-z_0-9]+]]]
// QUEUES:      plan.fill{{.*}} on @compute wait [{{.*}}] [0, 0, 0, 0, 0]

// Tests state on NVMe: it is read into host memory before its update and written behind it, by a queue each way; a third
// update is read before the first is written.
// NVME:      plan.arena @device space device
// NVME-NEXT: plan.arena @host space host
// NVME-NEXT: plan.arena @nvme space nvme
// NVME:      plan.queue @nvme_read kind io
// NVME-NEXT: plan.queue @nvme_write kind io
// NVME-NEXT: plan.queue @host_compute kind host
// NVME:      %[[M:.*]] = plan.buffer "m" in @nvme bytes 128 scope plan category optimizer
// NVME:      plan.copy(%[[M]], %[[HM:.*]]) : {{.*}} on @nvme_read wait [@ready_0] [0] signal [@[[READ:[a-z_0-9]+]]]
// NVME-NEXT: plan.kernel "sgd" {}(%{{.*}}, %{{.*}}, %[[HM]]){{.*}} on @host_compute wait [{{.*}}@[[READ]]] {{.*}} signal [@[[DONE:[a-z_0-9]+]]]
// NVME:      plan.copy(%[[HM]], %[[M]]) : {{.*}} on @nvme_write wait [{{.*}}@[[DONE]]]
plan.communicator @data_ranks axes [0]
plan.role @r ranks [0, 1] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %w = plan.buffer "w" in @device bytes 256 scope plan category weights slots 1 of @w
  %v = plan.buffer "v" in @device bytes 128 scope plan category weights slots 1 of @v
  %rate = plan.buffer "rate" in @device bytes 8 scope call category activations slots 1
  %m = plan.buffer "m" in @device bytes 128 scope plan category optimizer slots 1 of @m
  %n = plan.buffer "n" in @device bytes 64 scope plan category optimizer slots 1 of @n
  %small = plan.buffer "small" in @device bytes 8 scope plan category optimizer slots 1 of @small
  plan.routine @update phase update {
    plan.fill (%rate) : [tensor<f64>] access [2] at [0] on @compute
    plan.kernel "sgd" {} (%w, %rate, %m) : [tensor<32xf32>, tensor<f64>, tensor<32xf32>] access [3, 1, 3] at [0, 0, 0]
        stride [128, 0, 0] over @data_ranks on @compute
    plan.kernel "sgd" {} (%v, %rate, %n) : [tensor<16xf32>, tensor<f64>, tensor<16xf32>] access [3, 1, 3] at [64, 0, 0] on @compute
    plan.kernel "sgd" {} (%w, %rate, %small) : [tensor<2xf32>, tensor<f64>, tensor<2xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
  }
}
