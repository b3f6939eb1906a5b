// RUN: ds-opt %s --ds-offload-parameters=least-bytes=64 | FileCheck %s
// RUN: ds-opt %s "--ds-offload-parameters=least-bytes=64 space=nvme" | FileCheck %s --check-prefix=NVME
// RUN: ds-opt %s "--ds-offload-parameters=least-bytes=64 for-step" | FileCheck %s --check-prefix=STEP
// RUN: ds-opt %s "--ds-offload-parameters=least-bytes=64 for-step space=nvme" | FileCheck %s --check-prefix=STEP-NVME
// RUN: ds-opt %s "--ds-offload-parameters=least-bytes=64 host-updates" --ds-offload-optimizer=least-bytes=64 --ds-run-on-host | FileCheck %s --check-prefix=HOST

// Tests that parameters lie in host memory where they are large enough; that what a command reads of one comes while the
// command before uses another, a slice's from the place of the rank, also what an update writes; and that what is written goes back.
// CHECK-LABEL: plan.role @r
// CHECK:         plan.arena @device space device
// CHECK-NEXT:    plan.arena @host space host
// CHECK-DAG:     %[[W:.*]] = plan.buffer "w" in @host bytes 256 scope plan category weights
// CHECK-DAG:     %[[V:.*]] = plan.buffer "v" in @host bytes 128 scope plan category weights
// CHECK-DAG:     plan.buffer "small" in @device bytes 8 scope plan category weights
// CHECK:         plan.routine @forward
// CHECK-NEXT:    plan.copy(%[[W]], %[[NW:.*]]) : [tensor<32xf32>, tensor<32xf32>] access [1, 2] at [0, 0] stride [128, 0] over @data_ranks on @compute
// CHECK-NEXT:    plan.copy(%[[V]], %[[NV:.*]]) : [tensor<16xf32>, tensor<16xf32>] access [1, 2] at [64, 0] on @compute
// CHECK-NEXT:    plan.kernel "relu" {}(%[[NW]], %{{.*}}) : {{.*}} at [0, 0] on @compute
// CHECK-NEXT:    plan.kernel "relu" {}(%[[NV]], %{{.*}}) : {{.*}} at [0, 0] on @compute
// CHECK:         plan.routine @update
// CHECK:         plan.copy(%[[V]], %[[OLD:.*]]) :
// CHECK-NEXT:    plan.copy(%{{.*}}, %[[NEXT:.*]]) :
// CHECK-NEXT:    plan.kernel "sgd" {}(%[[OLD]], %{{.*}}, %{{.*}}) :
// CHECK-NEXT:    plan.copy(%[[OLD]], %[[V]]) : [tensor<16xf32>, tensor<16xf32>] access [1, 2] at [0, 64] on @compute
// CHECK-NEXT:    plan.kernel "sgd" {}(%[[NEXT]]

// Tests parameters in a file: they are read into host memory while two others are used or on their way.
// NVME:          %[[V:.*]] = plan.buffer "v" in @nvme bytes 128
// NVME:        plan.routine @forward
// NVME-NEXT:     plan.copy(%{{.*}}, %[[HW:.*]]) : {{.*}} stride [128, 0]
// NVME-NEXT:     plan.copy(%[[HW]], %{{.*}}) : {{.*}} at [0, 0] on @compute
// NVME-NEXT:     plan.copy(%[[V]], %[[HV:.*]]) : {{.*}} at [64, 0] on @compute
// NVME-NEXT:     plan.copy(%[[HV]], %[[NV:.*]]) : {{.*}} at [0, 0] on @compute
// NVME-NEXT:     plan.kernel "relu"
// NVME-NEXT:     plan.kernel "relu" {}(%[[NV]],

// Tests that an update which the host makes uses the parameter where it lies.
// HOST:          %[[V:.*]] = plan.buffer "v" in @host bytes 128
// HOST:          %[[M:.*]] = plan.buffer "m" in @host bytes 64
// HOST:        plan.routine @update
// HOST:          plan.copy(%{{.*}}, %[[G:.*]]) :
// HOST-NEXT:     plan.kernel "sgd" {}(%[[V]], %[[G]], %[[M]]) : {{.*}} at [64, 0, 0] on @compute

// Tests for-step: what the host updates comes whole in front of the routine that uses it first, in each program, for all that
// use it; what nobody updates stays. What is used first in a routine that a step calls twice comes once, at the start, by a call
// that is of the last micro-batch. From a file it would have to pass through host memory all that time, so it stays.
// STEP-DAG:      %[[W:.*]] = plan.buffer "w" in @device
// STEP-DAG:      %[[V:.*]] = plan.buffer "v" in @host bytes 128 scope plan category weights
// STEP-DAG:      %[[NEAR:.*]] = plan.buffer "v" in @device bytes 128 scope step category weights
// STEP-DAG:      %[[OFTEN:.*]] = plan.buffer "often" in @host bytes 64 scope plan category weights
// STEP-DAG:      %[[ONCE:.*]] = plan.buffer "often" in @device bytes 64 scope step category weights
// STEP:        plan.routine @forward
// STEP-NEXT:     plan.copy(%[[V]], %[[NEAR]]) : [tensor<32xf32>, tensor<32xf32>] access [1, 2] at [0, 0]
// STEP-NEXT:     plan.kernel "relu" {}(%[[W]], %{{.*}})
// STEP-NEXT:     plan.kernel "relu" {}(%[[NEAR]], %{{.*}}) : {{.*}} at [64, 0]
// STEP:        plan.routine @backward
// STEP-NEXT:     plan.kernel "relu" {}(%[[NEAR]],
// STEP-NEXT:     plan.kernel "relu" {}(%[[ONCE]],
// STEP:        plan.routine @update
// STEP:          plan.kernel "sgd" {}(%[[V]],
// STEP:        plan.routine @start_step phase begin
// STEP-NEXT:     plan.copy(%[[OFTEN]], %[[ONCE]]) : [tensor<16xf32>, tensor<16xf32>] access [1, 2] at [0, 0]
// STEP-NEXT:   }
// STEP-NEXT:   plan.program "step"
// STEP-NEXT:     plan.call @start_step microbatch 1
// STEP-NEXT:     plan.call @forward microbatch 0
// STEP-NVME-DAG: plan.buffer "often" in @device bytes 64 scope plan
// STEP-NVME:   plan.routine @forward
// STEP-NVME-NEXT: plan.copy(%[[V:[a-z0-9]+]], %[[HV:[a-z0-9]+]])
// STEP-NVME-NEXT: plan.copy(%[[HV]], %[[NEAR:[a-z0-9]+]])
plan.communicator @data_ranks axes [0]
plan.role @r ranks [0, 1] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %w = plan.buffer "w" in @device bytes 256 scope plan category weights slots 1 of @w
  %v = plan.buffer "v" in @device bytes 128 scope plan category weights slots 1 of @v
  %often = plan.buffer "often" in @device bytes 64 scope plan category weights slots 1 of @often
  %small = plan.buffer "small" in @device bytes 8 scope plan category weights slots 1 of @small
  %m = plan.buffer "m" in @device bytes 64 scope plan category optimizer slots 1 of @m
  %g = plan.buffer "g" in @device bytes 64 scope plan category gradients slots 1 of @g
  %x = plan.buffer "x" in @device bytes 128 scope call category activations slots 1
  plan.routine @forward phase forward stage 0 {
    plan.kernel "relu" {} (%w, %x) : [tensor<32xf32>, tensor<32xf32>] access [1, 2] at [0, 0]
        stride [128, 0] over @data_ranks on @compute
    plan.kernel "relu" {} (%v, %x) : [tensor<16xf32>, tensor<16xf32>] access [1, 2] at [64, 0] on @compute
    plan.kernel "relu" {} (%small, %x) : [tensor<2xf32>, tensor<2xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.routine @backward phase backward stage 0 {
    plan.kernel "relu" {} (%v, %x) : [tensor<16xf32>, tensor<16xf32>] access [1, 2] at [64, 0] on @compute
    plan.kernel "relu" {} (%often, %x) : [tensor<16xf32>, tensor<16xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.routine @update phase update {
    plan.kernel "sgd" {} (%v, %g, %m) : [tensor<16xf32>, tensor<16xf32>, tensor<16xf32>] access [3, 1, 3] at [64, 0, 0] on @compute
    plan.kernel "sgd" {} (%often, %g, %m) : [tensor<16xf32>, tensor<16xf32>, tensor<16xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
  }
  plan.program "step" {
    plan.call @forward microbatch 0
    plan.call @backward microbatch 0
    plan.call @backward microbatch 1
    plan.call @update microbatch 1
  }
}
