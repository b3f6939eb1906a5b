// RUN: ds-opt %s --ds-advance-updates=least-bytes=64 --split-input-file | FileCheck %s
// RUN: ds-opt %s "--ds-advance-updates=least-bytes=64 space=nvme" --split-input-file | FileCheck %s --check-prefix=NVME
// RUN: ds-opt %s "--ds-advance-updates=least-bytes=64 space=nvme speculates=true" --split-input-file | FileCheck %s --check-prefix=GUESS

// Tests that an update of the host's stands behind the last command that touches the same bytes, with what it takes computed first,
// whose buffer outlives the call, for what is left in the update reads it, too. The product takes 1.28 s, an update 0.0016 s. Not
// moved: what needs the norm of all gradients, and what the device updates, since its state is small. The last two may end late.
// CHECK-LABEL: plan.role @early
// CHECK:         plan.buffer "rate" in @device bytes 8 scope step
// CHECK:         plan.routine @backward
// CHECK-NEXT:      plan.kernel "learning_rate"
// CHECK-NEXT:      plan.kernel "neg" {}(%{{.*}}, %[[G:[a-z0-9]+]])
// CHECK-NEXT:      plan.kernel "relu" {}(%[[W:[a-z0-9]+]],
// CHECK-NEXT:      plan.kernel "sgd" {}(%[[W]], %[[G]], %{{.*}}, %{{.*}}) : {{.*}} at [0, 0, 0, 0]
// CHECK-NEXT:      plan.kernel "matmul"
// CHECK-NEXT:      plan.kernel "neg" {}(%{{.*}}, %[[LAST:[a-z0-9]+]])
// CHECK-NEXT:      plan.kernel "sgd" {}(%{{.*}}, %[[LAST]],
// CHECK-NEXT:    }
// CHECK:         plan.routine @update
// CHECK-NEXT:      plan.kernel "global_norm"
// CHECK-NEXT:      plan.kernel "sgd" {}(%{{.*}}, %{{.*}}, %{{.*}}, %[[NORM:[a-z0-9]+]])
// CHECK-NEXT:      plan.kernel "sgd" {}({{.*}}) : [tensor<8xf32>
// CHECK-NEXT:      plan.kernel "neg"

// Tests a file: an update's 4,000,000 bytes take 0.089 s each way, and a product takes 0.107 s. What the second update takes comes
// beside the first one; the third stands where the first should be back. The fourth would be back too late, and stays with those behind it.
// NVME-LABEL:  plan.role @file
// NVME:          plan.kernel "neg"
// NVME-NEXT:     plan.kernel "sgd" {}({{.*}}) : {{.*}} at [0, 0, 0]
// NVME-NEXT:     plan.kernel "sgd" {}({{.*}}) : {{.*}} at [4000000, 0, 4000000]
// NVME-NEXT:     plan.kernel "matmul"
// NVME-NEXT:     plan.kernel "matmul"
// NVME-NEXT:     plan.kernel "sgd" {}({{.*}}) : {{.*}} at [8000000, 0, 8000000]
// NVME-NEXT:     plan.kernel "matmul"
// NVME-NEXT:     plan.kernel "matmul"
// NVME:        plan.routine @update
// NVME-COUNT-3:  plan.kernel "sgd"
module attributes {dist.links = {"device-host" = array<f64: 1.0e9, 0.0>, "host-nvme" = array<f64: 1.0e9, 0.0>}} {
plan.role @early ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %w = plan.buffer "w" in @device bytes 12000000 scope plan category weights slots 1 of @w
  %m = plan.buffer "m" in @device bytes 4000000 scope plan category optimizer slots 1 of @m
  %n = plan.buffer "n" in @device bytes 4000000 scope plan category optimizer slots 1 of @n
  %o = plan.buffer "o" in @device bytes 4000000 scope plan category optimizer slots 1 of @o
  %p = plan.buffer "p" in @device bytes 32 scope plan category optimizer slots 1 of @p
  %step = plan.buffer "step" in @device bytes 8 scope plan category optimizer slots 1 of @step
  %g = plan.buffer "g" in @device bytes 4000000 scope step category gradients slots 1
  %last = plan.buffer "last" in @device bytes 4000000 scope step category gradients slots 1
  %x = plan.buffer "x" in @device bytes 4000000 scope call category activations slots 1
  %a = plan.buffer "a" in @device bytes 64000000 scope call category activations slots 1
  plan.routine @backward phase backward stage 0 {
    plan.kernel "neg" {} (%x, %g) : [tensor<1000000xf32>, tensor<1000000xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "relu" {} (%w, %x) : [tensor<1000000xf32>, tensor<1000000xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "matmul" {bias = 0 : i64, pieces = 1 : i64, trans_a = 0 : i64, trans_b = 0 : i64} (%a, %a, %a) : [tensor<4000x4000xf32>, tensor<4000x4000xf32>, tensor<4000x4000xf32>] access [1, 1, 2] at [0, 0, 0] on @compute
    plan.kernel "neg" {} (%x, %last) : [tensor<1000000xf32>, tensor<1000000xf32>] access [1, 2] at [0, 0] on @compute
  }
  %rate = plan.buffer "rate" in @device bytes 8 scope call category activations slots 1
  %norm = plan.buffer "norm" in @device bytes 8 scope call category activations slots 1
  plan.routine @update phase update {
    plan.kernel "learning_rate" {} (%step, %rate) : [tensor<i64>, tensor<f64>] access [1, 2] at [0, 0] on @compute
    plan.kernel "global_norm" {} (%g, %norm) : [tensor<500000xf64>, tensor<f64>] access [1, 2] at [0, 0] on @compute
    plan.kernel "sgd" {} (%w, %last, %n, %rate) : [tensor<1000000xf32>, tensor<1000000xf32>, tensor<1000000xf32>, tensor<f64>] access [3, 1, 3, 1] at [4000000, 0, 0, 0] on @compute
    plan.kernel "sgd" {} (%w, %g, %m, %rate) : [tensor<1000000xf32>, tensor<1000000xf32>, tensor<1000000xf32>, tensor<f64>] access [3, 1, 3, 1] at [0, 0, 0, 0] on @compute
    plan.kernel "sgd" {} (%w, %g, %o, %norm) : [tensor<1000000xf32>, tensor<1000000xf32>, tensor<1000000xf32>, tensor<f64>] access [3, 1, 3, 1] at [8000000, 0, 0, 0] on @compute
    plan.kernel "sgd" {} (%w, %g, %p, %rate) : [tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f64>] access [3, 1, 3, 1] at [11000000, 0, 0, 0] on @compute
    plan.kernel "neg" {} (%rate, %norm) : [tensor<f64>, tensor<f64>] access [1, 2] at [0, 0] on @compute
  }
  plan.program "step" {
    plan.call @backward microbatch 0
    plan.call @update microbatch 0
  }
}
}

// -----

module attributes {dist.links = {"device-host" = array<f64: 1.0e9, 0.0>, "host-nvme" = array<f64: 4.5e7, 0.0>}} {
plan.role @file ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %w = plan.buffer "w" in @device bytes 24000000 scope plan category weights slots 1 of @w
  %m = plan.buffer "m" in @device bytes 24000000 scope plan category optimizer slots 1 of @m
  %g = plan.buffer "g" in @device bytes 4000000 scope step category gradients slots 1
  %x = plan.buffer "x" in @device bytes 4000000 scope call category activations slots 1
  %a = plan.buffer "a" in @device bytes 12250000 scope call category activations slots 1
  plan.routine @backward phase backward stage 0 {
    plan.kernel "neg" {} (%x, %g) : [tensor<1000000xf32>, tensor<1000000xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "matmul" {bias = 0 : i64, pieces = 1 : i64, trans_a = 0 : i64, trans_b = 0 : i64} (%a, %a, %a) : [tensor<1750x1750xf32>, tensor<1750x1750xf32>, tensor<1750x1750xf32>] access [1, 1, 2] at [0, 0, 0] on @compute
    plan.kernel "matmul" {bias = 0 : i64, pieces = 1 : i64, trans_a = 0 : i64, trans_b = 0 : i64} (%a, %a, %a) : [tensor<1750x1750xf32>, tensor<1750x1750xf32>, tensor<1750x1750xf32>] access [1, 1, 2] at [0, 0, 0] on @compute
    plan.kernel "matmul" {bias = 0 : i64, pieces = 1 : i64, trans_a = 0 : i64, trans_b = 0 : i64} (%a, %a, %a) : [tensor<1750x1750xf32>, tensor<1750x1750xf32>, tensor<1750x1750xf32>] access [1, 1, 2] at [0, 0, 0] on @compute
    plan.kernel "matmul" {bias = 0 : i64, pieces = 1 : i64, trans_a = 0 : i64, trans_b = 0 : i64} (%a, %a, %a) : [tensor<1750x1750xf32>, tensor<1750x1750xf32>, tensor<1750x1750xf32>] access [1, 1, 2] at [0, 0, 0] on @compute
  }
  plan.routine @update phase update {
    plan.kernel "sgd" {} (%w, %g, %m) : [tensor<1000000xf32>, tensor<1000000xf32>, tensor<1000000xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
    plan.kernel "sgd" {} (%w, %g, %m) : [tensor<1000000xf32>, tensor<1000000xf32>, tensor<1000000xf32>] access [3, 1, 3] at [4000000, 0, 4000000] on @compute
    plan.kernel "sgd" {} (%w, %g, %m) : [tensor<1000000xf32>, tensor<1000000xf32>, tensor<1000000xf32>] access [3, 1, 3] at [8000000, 0, 8000000] on @compute
    plan.kernel "sgd" {} (%w, %g, %m) : [tensor<1000000xf32>, tensor<1000000xf32>, tensor<1000000xf32>] access [3, 1, 3] at [12000000, 0, 12000000] on @compute
    plan.kernel "sgd" {} (%w, %g, %m) : [tensor<1000000xf32>, tensor<1000000xf32>, tensor<1000000xf32>] access [3, 1, 3] at [16000000, 0, 16000000] on @compute
    plan.kernel "sgd" {} (%w, %g, %m) : [tensor<1000000xf32>, tensor<1000000xf32>, tensor<1000000xf32>] access [3, 1, 3] at [20000000, 0, 20000000] on @compute
  }
  plan.program "step" {
    plan.call @backward microbatch 0
    plan.call @update microbatch 0
  }
}
}

// -----

// Tests that nothing moves where links are unknown, or where the backward is called for several micro-batches.
// CHECK-LABEL: plan.role @late
// CHECK:         plan.routine @update
// CHECK-NEXT:      plan.kernel "sgd"
plan.role @late ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %w = plan.buffer "w" in @device bytes 64 scope plan category weights slots 1 of @w
  %m = plan.buffer "m" in @device bytes 64 scope plan category optimizer slots 1 of @m
  %g = plan.buffer "g" in @device bytes 64 scope step category gradients slots 1
  plan.routine @backward phase backward stage 0 {
    plan.kernel "neg" {} (%g, %g) : [tensor<16xf32>, tensor<16xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "neg" {} (%g, %g) : [tensor<16xf32>, tensor<16xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.routine @update phase update {
    plan.kernel "sgd" {} (%w, %g, %m) : [tensor<16xf32>, tensor<16xf32>, tensor<16xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
  }
  plan.program "step" {
    plan.call @backward microbatch 0
    plan.call @update microbatch 0
  }
}

// -----

// CHECK-LABEL: plan.role @twice
// CHECK:         plan.routine @update
// CHECK-NEXT:      plan.kernel "sgd"
module attributes {dist.links = {"device-host" = array<f64: 1.0e9, 0.0>}} {
plan.role @twice ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %w = plan.buffer "w" in @device bytes 64 scope plan category weights slots 1 of @w
  %m = plan.buffer "m" in @device bytes 64 scope plan category optimizer slots 1 of @m
  %g = plan.buffer "g" in @device bytes 64 scope step category gradients slots 1
  plan.routine @backward phase backward stage 0 {
    plan.kernel "neg" {} (%g, %g) : [tensor<16xf32>, tensor<16xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "neg" {} (%g, %g) : [tensor<16xf32>, tensor<16xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.routine @update phase update {
    plan.kernel "sgd" {} (%w, %g, %m) : [tensor<16xf32>, tensor<16xf32>, tensor<16xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
  }
  plan.program "step" {
    plan.call @backward microbatch 0
    plan.call @backward microbatch 1
    plan.call @update microbatch 1
  }
}
}

// -----

// Tests an update that waits for the norm alone: it is made with the factor 1, of a copy of the parameter that was kept, and scalars as
// they are now; the tail makes it again with the factor. Where the parameter's result is needed by another command of the update, it waits.
// CHECK-LABEL: plan.role @guess
// CHECK:         plan.routine @update
// CHECK:           plan.kernel "sgd"
// GUESS-LABEL: plan.role @guess
// GUESS-DAG:     %[[ONE:.*]] = plan.buffer "constant::one" in @device bytes 8 scope plan category constants slots 1 of @"constant::one"
// GUESS-DAG:     %[[HOSTRATE:.*]] = plan.buffer "rate" in @host bytes 8 scope step
// GUESS-DAG:     %[[HOSTSTEP:.*]] = plan.buffer "step" in @host bytes 8 scope step
// GUESS-DAG:     %[[HOSTONE:.*]] = plan.buffer "constant::one" in @host bytes 8 scope step
// GUESS-DAG:     %[[KEPT:.*]] = plan.buffer "w" in @host bytes 4000000 scope step category weights
// GUESS-DAG:     %[[NEW:.*]] = plan.buffer "w" in @host bytes 4000000 scope call category weights
// GUESS:         plan.routine @backward
// GUESS-NEXT:      plan.kernel "learning_rate" {}(%{{.*}}, %[[RATE:[a-z0-9]+]])
// GUESS-NEXT:      plan.copy(%[[RATE]], %[[HOSTRATE]])
// GUESS-NEXT:      plan.copy(%{{.*}}, %[[HOSTSTEP]])
// GUESS-NEXT:      plan.copy(%[[ONE]], %[[HOSTONE]])
// GUESS-NEXT:      plan.copy(%[[W:[a-z0-9]+]], %[[KEPT]])
// GUESS-NEXT:      plan.copy(%[[KEPT]], %[[NEW]])
// GUESS-NEXT:      plan.kernel "neg" {}(%{{.*}}, %[[G:[a-z0-9]+]])
// GUESS-NEXT:      plan.kernel "sgd" {}(%[[NEW]], %[[G]], %[[M:[a-z0-9]+]], %[[HOSTRATE]], %[[HOSTSTEP]], %[[HOSTONE]])
// GUESS-NEXT:      plan.copy(%[[NEW]], %[[W]])
// GUESS-NEXT:      plan.kernel "matmul"
// GUESS:         %[[FACTOR:.*]] = plan.buffer "factor" in @device bytes 8 scope step
// GUESS-NEXT:    plan.routine @update
// GUESS-NEXT:      plan.kernel "global_norm"
// GUESS-NEXT:      plan.kernel "neg" {}(%{{.*}}, %[[FACTOR]])
// GUESS-NEXT:      plan.kernel "sgd"
// GUESS-NEXT:      plan.kernel "relu"
// GUESS:         plan.routine @redo phase update {
// GUESS-NEXT:      plan.kernel "sgd" {}(%[[KEPT]], %[[G]], %[[M]], %[[HOSTRATE]], %[[HOSTSTEP]], %[[FACTOR]])
// GUESS-NEXT:      plan.copy(%[[KEPT]], %[[W]])
// GUESS:           plan.call @update microbatch 0
// GUESS-NEXT:      plan.tail unless_one %[[FACTOR]] : tensor<f64>
// GUESS-NEXT:      plan.call @redo microbatch 0
module attributes {dist.links = {"device-host" = array<f64: 1.0e9, 0.0>, "host-nvme" = array<f64: 1.0e9, 0.0>}} {
plan.role @guess ranks [0, 0] {
  plan.arena @device space device
  plan.arena @host space host
  plan.queue @compute kind compute
  %w = plan.buffer "w" in @device bytes 8000000 scope plan category weights slots 1 of @w
  %m = plan.buffer "m" in @device bytes 8000000 scope plan category optimizer slots 1 of @m
  %step = plan.buffer "step" in @device bytes 8 scope plan category optimizer slots 1 of @step
  %g = plan.buffer "g" in @device bytes 4000000 scope step category gradients slots 1
  %x = plan.buffer "x" in @device bytes 4000000 scope call category activations slots 1
  %a = plan.buffer "a" in @device bytes 64000000 scope call category activations slots 1
  plan.routine @backward phase backward stage 0 {
    plan.kernel "neg" {} (%x, %g) : [tensor<1000000xf32>, tensor<1000000xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "matmul" {bias = 0 : i64, pieces = 1 : i64, trans_a = 0 : i64, trans_b = 0 : i64} (%a, %a, %a) : [tensor<4000x4000xf32>, tensor<4000x4000xf32>, tensor<4000x4000xf32>] access [1, 1, 2] at [0, 0, 0] on @compute
  }
  %rate = plan.buffer "rate" in @device bytes 8 scope call category activations slots 1
  %norm = plan.buffer "norm" in @device bytes 8 scope call category activations slots 1
  %factor = plan.buffer "factor" in @device bytes 8 scope call category activations slots 1
  plan.routine @update phase update {
    plan.kernel "learning_rate" {} (%step, %rate) : [tensor<i64>, tensor<f64>] access [1, 2] at [0, 0] on @compute
    plan.kernel "global_norm" {} (%g, %norm) : [tensor<500000xf64>, tensor<f64>] access [1, 2] at [0, 0] on @compute
    plan.kernel "neg" {} (%norm, %factor) : [tensor<f64>, tensor<f64>] access [1, 2] at [0, 0] on @compute
    plan.kernel "sgd" {} (%w, %g, %m, %rate, %step, %factor) : [tensor<1000000xf32>, tensor<1000000xf32>, tensor<1000000xf32>, tensor<f64>, tensor<i64>, tensor<f64>] access [3, 1, 3, 1, 1, 1] at [0, 0, 0, 0, 0, 0] on @compute
    plan.kernel "sgd" {} (%w, %g, %m, %rate, %step, %factor) : [tensor<1000000xf32>, tensor<1000000xf32>, tensor<1000000xf32>, tensor<f64>, tensor<i64>, tensor<f64>] access [3, 1, 3, 1, 1, 1] at [4000000, 0, 4000000, 0, 0, 0] on @compute
    plan.kernel "relu" {} (%w, %w) : [tensor<1000000xf32>, tensor<1000000xf32>] access [1, 2] at [4000000, 4000000] on @compute
  }
  plan.program "step" {
    plan.call @backward microbatch 0
    plan.call @update microbatch 0
  }
}
}
