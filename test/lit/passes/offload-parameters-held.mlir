// RUN: ds-opt %s --split-input-file --ds-offload-parameters=least-bytes=64 | FileCheck %s
// RUN: ds-opt %s --split-input-file "--ds-offload-parameters=least-bytes=64 space=nvme" | FileCheck %s --check-prefix=NVME

// Tests that the last parameter of a forward, which the backward behind it reads first, comes once for both; what the backward reads
// next comes again.
// CHECK-LABEL: plan.role @held
// CHECK:         %[[HEAD:[a-z0-9]+]] = plan.buffer "head" in @host
// CHECK:         %[[NEAR:[a-z0-9]+]] = plan.buffer "head" in @device bytes 128 scope slot category communication slots 1
// CHECK:         plan.routine @forward
// CHECK:           plan.copy(%[[HEAD]], %[[NEAR]])
// CHECK:           plan.kernel "exp" {}(%[[NEAR]],
// CHECK:         plan.routine @backward
// CHECK-NEXT:      plan.copy(
// CHECK-NEXT:      plan.kernel "exp" {}(%[[NEAR]],
// CHECK-NEXT:      plan.copy(%[[HEAD]], %[[AGAIN:[a-z0-9]+]])
// CHECK-NEXT:      plan.kernel "relu"
// CHECK-NEXT:      plan.kernel "exp" {}(%[[AGAIN]],

module {
plan.role @held ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %w = plan.buffer "w" in @device bytes 64 scope plan category weights slots 1 of @w
  %v = plan.buffer "v" in @device bytes 80 scope plan category weights slots 1 of @v
  %head = plan.buffer "head" in @device bytes 128 scope plan category weights slots 1 of @head
  %g = plan.buffer "g" in @device bytes 128 scope step category gradients slots 1
  %x = plan.buffer "x" in @device bytes 128 scope call category activations slots 1
  plan.routine @forward phase forward stage 0 {
    plan.kernel "relu" {}(%w, %x) : [tensor<16xf32>, tensor<16xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "relu" {}(%v, %x) : [tensor<20xf32>, tensor<20xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "exp" {}(%head, %x) : [tensor<32xf32>, tensor<32xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.routine @backward phase backward stage 0 {
    plan.kernel "exp" {}(%head, %x) : [tensor<32xf32>, tensor<32xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "relu" {}(%v, %x) : [tensor<20xf32>, tensor<20xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "exp" {}(%head, %x) : [tensor<32xf32>, tensor<32xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.routine @update phase update {
    plan.kernel "sgd" {}(%w, %g) : [tensor<16xf32>, tensor<16xf32>] access [3, 1] at [0, 0] on @compute
    plan.kernel "sgd" {}(%v, %g) : [tensor<20xf32>, tensor<20xf32>] access [3, 1] at [0, 0] on @compute
    plan.kernel "sgd" {}(%head, %g) : [tensor<32xf32>, tensor<32xf32>] access [3, 1] at [0, 0] on @compute
  }
  plan.program "step" {
    plan.call @forward microbatch 0
    plan.call @backward microbatch 0
    plan.call @forward microbatch 1
    plan.call @backward microbatch 1
    plan.call @update microbatch 1
  }
}
}

// -----

// Tests that nothing is held where a backward does not follow its forward, and that what a command of the routine writes comes behind it:
// a part that it does not write may come before.
// CHECK-LABEL: plan.role @parted
// CHECK:         plan.routine @backward
// CHECK:           plan.copy(
// CHECK:           plan.kernel "exp"
// CHECK:         plan.routine @update
// CHECK-NEXT:      plan.copy({{.*}}) : [tensor<24xf32>, {{.*}} at [0, 0]
// CHECK-NEXT:      plan.copy({{.*}}) : [tensor<8xf32>, {{.*}} at [96, 0]
// CHECK-NEXT:      plan.kernel "sgd" {{.*}} : [tensor<24xf32>,
// CHECK-NEXT:      plan.copy({{.*}}) : [tensor<24xf32>, {{.*}} at [0, 0]
// CHECK-NEXT:      plan.kernel "sgd" {{.*}} : [tensor<8xf32>,
// CHECK-NEXT:      plan.copy({{.*}}) : [tensor<8xf32>, {{.*}} at [0, 96]
// CHECK-NEXT:      plan.copy({{.*}}) : [tensor<32xf32>,
// CHECK-NEXT:      plan.kernel "exp"
module {
plan.role @parted ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %head = plan.buffer "head" in @device bytes 128 scope plan category weights slots 1 of @head
  %g = plan.buffer "g" in @device bytes 128 scope step category gradients slots 1
  %x = plan.buffer "x" in @device bytes 128 scope call category activations slots 1
  plan.routine @forward phase forward stage 0 {
    plan.kernel "exp" {}(%head, %x) : [tensor<32xf32>, tensor<32xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.routine @backward phase backward stage 0 {
    plan.kernel "exp" {}(%head, %x) : [tensor<32xf32>, tensor<32xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.routine @update phase update {
    plan.kernel "sgd" {}(%head, %g) : [tensor<24xf32>, tensor<24xf32>] access [3, 1] at [0, 0] on @compute
    plan.kernel "sgd" {}(%head, %g) : [tensor<8xf32>, tensor<8xf32>] access [3, 1] at [96, 96] on @compute
    plan.kernel "exp" {}(%head, %x) : [tensor<32xf32>, tensor<32xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.program "step" {
    plan.call @forward microbatch 0
    plan.call @forward microbatch 1
    plan.call @backward microbatch 0
    plan.call @backward microbatch 1
    plan.call @update microbatch 1
  }
}
}

// -----

// Tests that a file is read as early as drive and link take, and not only while two other parameters are used: 4 MB take 4 ms of the drive,
// and as much of the link, which begins behind it.
// NVME-LABEL:  plan.role @early
// NVME:          %[[HEAD:[a-z0-9]+]] = plan.buffer "head" in @nvme
// NVME:          plan.routine @forward
// NVME:            plan.kernel "exp"
// NVME:            plan.copy(%[[HEAD]], %[[HOST:[a-z0-9]+]])
// NVME-NEXT:       plan.copy(%[[HOST]], %[[NEAR:[a-z0-9]+]])
// NVME-NEXT:       plan.kernel "exp"
// NVME:            plan.kernel "relu"
// NVME:            plan.kernel "relu"
// NVME:            plan.kernel "exp" {}(%[[NEAR]],
module attributes {dist.links = {"device-host" = array<f64: 1.0e9, 0.0>, "host-nvme" = array<f64: 1.0e9, 0.0>}} {
plan.role @early ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %w = plan.buffer "w" in @device bytes 64 scope plan category weights slots 1 of @w
  %v = plan.buffer "v" in @device bytes 80 scope plan category weights slots 1 of @v
  %head = plan.buffer "head" in @device bytes 4000000 scope plan category weights slots 1 of @head
  %x = plan.buffer "x" in @device bytes 400000000 scope call category activations slots 1
  plan.routine @forward phase forward stage 0 {
    plan.kernel "exp" {}(%x, %x) : [tensor<100000000xf32>, tensor<100000000xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "exp" {}(%x, %x) : [tensor<100000000xf32>, tensor<100000000xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "relu" {}(%w, %x) : [tensor<16xf32>, tensor<16xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "relu" {}(%v, %x) : [tensor<20xf32>, tensor<20xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "exp" {}(%head, %x) : [tensor<1000000xf32>, tensor<1000000xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.program "step" {
    plan.call @forward microbatch 0
  }
}
}
