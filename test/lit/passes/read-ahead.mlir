// RUN: ds-opt %s --ds-read-ahead --split-input-file | FileCheck %s
// RUN: ds-opt %s --ds-read-ahead=bytes=4096 --split-input-file | FileCheck %s --check-prefix=LITTLE
// RUN: ds-opt %s --ds-read-ahead --ds-order-queues --split-input-file | FileCheck %s --check-prefix=ORDERED

// Tests reads of 0.5 s each, which have twice as long. The update's two end with the backward, whose products take 1.6 s each; one of its own keeps its
// place, and so does one of bytes that are written before it. Of 4,096 bytes, the first alone comes earlier. Who uses it waits for it.
// CHECK-LABEL: plan.role @once
// CHECK:         %[[M:.*]] = plan.buffer "m" in @host bytes 4096 scope step
// CHECK:         %[[V:.*]] = plan.buffer "v" in @host bytes 4096 scope step
// CHECK:         %[[OWN:.*]] = plan.buffer "own" in @host bytes 4096 scope call
// CHECK:         plan.routine @backward
// CHECK-NEXT:      plan.kernel "matmul"
// CHECK-NEXT:      plan.copy(%{{.*}}, %[[OWN]])
// CHECK-NEXT:      plan.kernel "neg" {}(%[[OWN]], %[[OWN]])
// CHECK-NEXT:      plan.copy(%{{.*}}, %[[M]])
// CHECK-NEXT:      plan.kernel "matmul"
// CHECK-NEXT:      plan.copy(%{{.*}}, %[[V]])
// CHECK-NEXT:      plan.kernel "matmul"{{.*}}
// CHECK-NEXT:    }
// CHECK:         plan.routine @update
// CHECK-NEXT:      plan.kernel "add" {}(%[[M]], %[[V]], %[[M]])
// CHECK-NEXT:      plan.copy(%[[M]], %[[FILE:.*]])
// CHECK-NEXT:      plan.copy(%[[FILE]], %[[V]]){{.*}}
// CHECK-NEXT:    }

// LITTLE-LABEL: plan.role @once
// LITTLE:         plan.routine @backward
// LITTLE:           plan.kernel "neg"
// LITTLE-NEXT:      plan.kernel "matmul"
// LITTLE-NEXT:      plan.copy
// LITTLE-NEXT:      plan.kernel "matmul"{{.*}}
// LITTLE-NEXT:    }
// LITTLE:         plan.routine @update
// LITTLE-NEXT:      plan.copy
// LITTLE-NEXT:      plan.kernel "add"

// ORDERED-LABEL: plan.role @once
// ORDERED:         plan.routine @backward
// ORDERED:           plan.copy{{.*}} on @nvme_read {{.*}}signal [@{{.*}}]
// ORDERED:           plan.copy{{.*}} on @nvme_read {{.*}}signal [@[[FIRST:.*]]]
// ORDERED:           plan.copy{{.*}} on @nvme_read {{.*}}signal [@[[SECOND:.*]]]
// ORDERED-NEXT:      plan.kernel "matmul"
// ORDERED-NOT:       @[[FIRST]]
// ORDERED:         plan.routine @update
// ORDERED:           plan.kernel "add"{{.*}} on @host_compute wait [@{{.*}}, @[[FIRST]], @[[SECOND]]]
module attributes {dist.links = {"host-nvme" = array<f64: 8192.0, 0.0>}} {
plan.role @once ranks [0, 0] {
  plan.arena @device space device
  plan.arena @host space host
  plan.arena @nvme space nvme
  plan.queue @compute kind compute
  %files = plan.buffer "files" in @nvme bytes 12288 scope plan category optimizer slots 1 of @files
  %m = plan.buffer "m" in @host bytes 4096 scope call category communication slots 1
  %v = plan.buffer "v" in @host bytes 4096 scope call category communication slots 1
  %own = plan.buffer "own" in @host bytes 4096 scope call category communication slots 1
  %a = plan.buffer "a" in @device bytes 64000000 scope call category activations slots 1
  plan.routine @backward phase backward stage 0 {
    plan.kernel "matmul" {bias = 0 : i64, pieces = 1 : i64, trans_a = 0 : i64, trans_b = 0 : i64} (%a, %a, %a) : [tensor<4000x4000xf32>, tensor<4000x4000xf32>, tensor<4000x4000xf32>] access [1, 1, 2] at [0, 0, 0] on @compute
    plan.copy(%files, %own) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [8192, 0] on @compute
    plan.kernel "neg" {}(%own, %own) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "matmul" {bias = 0 : i64, pieces = 1 : i64, trans_a = 0 : i64, trans_b = 0 : i64} (%a, %a, %a) : [tensor<4000x4000xf32>, tensor<4000x4000xf32>, tensor<4000x4000xf32>] access [1, 1, 2] at [0, 0, 0] on @compute
    plan.kernel "matmul" {bias = 0 : i64, pieces = 1 : i64, trans_a = 0 : i64, trans_b = 0 : i64} (%a, %a, %a) : [tensor<4000x4000xf32>, tensor<4000x4000xf32>, tensor<4000x4000xf32>] access [1, 1, 2] at [0, 0, 0] on @compute
  }
  plan.routine @update phase update {
    plan.copy(%files, %m) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
    plan.copy(%files, %v) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [4096, 0] on @compute
    plan.kernel "add" {}(%m, %v, %m) : [tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>] access [1, 1, 2] at [0, 0, 0] on @compute
    plan.copy(%m, %files) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
    plan.copy(%files, %v) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.program "step" {
    plan.call @backward microbatch 0
    plan.call @update microbatch 0
  }
}
}

// -----

// Tests a backward that is called for two micro-batches: the read stands in a routine in front of its last call.
// CHECK-LABEL: plan.role @several
// CHECK:         plan.routine @update
// CHECK-NEXT:      plan.kernel "neg" {{.*}}
// CHECK-NEXT:    }
// CHECK:         plan.routine @start_backward phase begin {
// CHECK-NEXT:      plan.copy{{.*}}
// CHECK-NEXT:    }
// CHECK:         plan.program "step"
// CHECK-NEXT:      plan.call @backward microbatch 0
// CHECK-NEXT:      plan.call @start_backward microbatch 1
// CHECK-NEXT:      plan.call @backward microbatch 1
// CHECK-NEXT:      plan.call @update microbatch 1

// ORDERED-LABEL: plan.role @several
// ORDERED:         plan.routine @update
// ORDERED:           plan.kernel "neg"{{.*}} on @host_compute wait [@{{.*}}, @[[READ:.*]]] [0, 0]
// ORDERED:         plan.routine @start_backward
// ORDERED:           plan.copy{{.*}} on @nvme_read {{.*}}signal [@[[READ]]]
module attributes {dist.links = {"host-nvme" = array<f64: 8192.0, 0.0>}} {
plan.role @several ranks [0, 0] {
  plan.arena @device space device
  plan.arena @host space host
  plan.arena @nvme space nvme
  plan.queue @compute kind compute
  %file = plan.buffer "file" in @nvme bytes 4096 scope plan category optimizer slots 1 of @file
  %m = plan.buffer "m" in @host bytes 4096 scope call category communication slots 1
  %x = plan.buffer "x" in @device bytes 4096 scope call category activations slots 1
  plan.routine @backward phase backward stage 0 {
    plan.kernel "exp" {}(%x, %x) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.routine @update phase update {
    plan.copy(%file, %m) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "neg" {}(%m, %m) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.program "step" {
    plan.call @backward microbatch 0
    plan.call @backward microbatch 1
    plan.call @update microbatch 1
  }
}
}
