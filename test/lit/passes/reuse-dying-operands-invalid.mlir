// What the pass refuses, and what it must leave alone.
// RUN: not ds-opt %s --ds-reuse-dying-operands=alignment=48 --split-input-file 2>&1 | FileCheck %s --check-prefix=ALIGNMENT
// RUN: ds-opt %s --ds-reuse-dying-operands --split-input-file | FileCheck %s

// ALIGNMENT: error: alignment 48 is not a power of two

// Tests kernels that may not: a transpose reads elements elsewhere, a product each many times; and a call that its row does not allow.
// CHECK-LABEL: plan.role @main
// CHECK:           plan.kernel "transpose" {{.*}}(%[[X:.*]], %[[Y:.*]]) :
// CHECK-NEXT:      plan.kernel "matmul" {{.*}}(%[[Y]], %[[W:.*]], %[[Z:.*]]) :
// CHECK-NEXT:      plan.kernel "reduce_sum" {{.*}}(%[[Z]], %[[U:.*]]) :
// CHECK-NEXT:      plan.kernel "elementwise" {}(%[[U]], %[[V:.*]]) :
// CHECK-NEXT:      plan.kernel "transpose" {{.*}}(%[[V]], %{{.*}}) :
#product = {bias = 0 : i64, pieces = 1 : i64, trans_a = 0 : i64, trans_b = 0 : i64}
#same = {perm = array<i64: 0>}
#sum = {axes = array<i64>}
plan.role @main ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %x = plan.buffer "x" in @device bytes 16 scope call category activations slots 1
  %y = plan.buffer "y" in @device bytes 16 scope call category activations slots 1
  %z = plan.buffer "z" in @device bytes 16 scope call category activations slots 1
  %u = plan.buffer "u" in @device bytes 16 scope call category activations slots 1
  %v = plan.buffer "v" in @device bytes 16 scope call category activations slots 1
  %w = plan.buffer "w" in @device bytes 16 scope call category activations slots 1
  plan.routine @forward phase forward stage 0 {
    plan.kernel "transpose" #same(%x, %y) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "matmul" #product(%y, %w, %z) : [tensor<4xf32>, tensor<4xf32>, tensor<4xf32>] access [1, 1, 2] at [0, 0, 0] on @compute
    plan.kernel "reduce_sum" #sum(%z, %u) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "elementwise" {}(%u, %v) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "transpose" #same(%v, %x) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.program "step" {
    plan.call @forward microbatch 0
  }
}

// -----

// Tests what is not the result's shape or type, what is read later, what is read twice by the command, inputs and state.
// CHECK-LABEL: plan.role @main
// CHECK:           plan.kernel "elementwise" {{.*}}(%[[ROW:.*]], %[[A:.*]]) : [tensor<1xf32>, tensor<4xf32>]
// CHECK-NEXT:      plan.kernel "elementwise" {{.*}}(%[[A]], %[[I:.*]]) : [tensor<4xf32>, tensor<4xi32>]
// CHECK-NEXT:      plan.kernel "elementwise" {{.*}}(%[[I]], %[[A]], %[[B:.*]]) : [tensor<4xi32>, tensor<4xf32>, tensor<4xf32>]
// CHECK-NEXT:      plan.kernel "elementwise" {{.*}}(%[[A]], %[[A]], %[[C:.*]]) : [tensor<4xf32>, tensor<2x2xf32>, tensor<4xf32>]
// CHECK-NEXT:      plan.kernel "elementwise" {{.*}}(%[[X:.*]], %[[D:.*]]) :
// CHECK-NEXT:      plan.kernel "elementwise" {{.*}}(%[[M:.*]], %[[E:.*]]) :
// CHECK-NEXT:      plan.kernel "transpose" {{.*}}(%[[D]], %[[E]]) :
#program = {constants = array<f64>, program = array<i64>, results = array<i64: 0>}
#same = {perm = array<i64: 0>}
plan.role @main ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %row = plan.buffer "row" in @device bytes 4 scope call category activations slots 1
  %a = plan.buffer "a" in @device bytes 16 scope call category activations slots 1
  %i = plan.buffer "i" in @device bytes 16 scope call category activations slots 1
  %b = plan.buffer "b" in @device bytes 16 scope call category activations slots 1
  %c = plan.buffer "c" in @device bytes 16 scope call category activations slots 1
  %d = plan.buffer "d" in @device bytes 16 scope call category activations slots 1
  %e = plan.buffer "e" in @device bytes 16 scope call category activations slots 1
  %x = plan.buffer "x" in @device bytes 16 scope slot category inputs slots 1
  %m = plan.buffer "m" in @device bytes 16 scope step category activations slots 1
  plan.routine @forward phase forward stage 0 {
    plan.kernel "elementwise" #program(%row, %a) : [tensor<1xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "elementwise" #program(%a, %i) : [tensor<4xf32>, tensor<4xi32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "elementwise" #program(%i, %a, %b) : [tensor<4xi32>, tensor<4xf32>, tensor<4xf32>] access [1, 1, 2] at [0, 0, 0] on @compute
    plan.kernel "elementwise" #program(%a, %a, %c) : [tensor<4xf32>, tensor<2x2xf32>, tensor<4xf32>] access [1, 1, 2] at [0, 0, 0] on @compute
    plan.kernel "elementwise" #program(%x, %d) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "elementwise" #program(%m, %e) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "transpose" #same(%d, %e) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.program "step" {
    plan.call @forward microbatch 0
  }
}

// -----

// Tests what a collective may still read beside compute.
// CHECK-LABEL: plan.role @main
// CHECK:           plan.kernel "elementwise" {{.*}}(%[[G:.*]], %[[OWN:.*]]) :
// CHECK-NEXT:      plan.await
#program = {constants = array<f64>, program = array<i64>, results = array<i64: 0>}
plan.communicator @data_ranks axes [0]
plan.role @main ranks [0, 3] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %g = plan.buffer "g" in @device bytes 16 scope call category activations slots 1
  %all = plan.buffer "all" in @device bytes 64 scope call category activations slots 1
  %y = plan.buffer "y" in @device bytes 16 scope call category activations slots 1
  plan.routine @forward phase forward stage 0 {
    plan.fill(%g) : [tensor<4xf32>] access [2] at [0] on @compute
    %t = plan.collective all_gather(%g, %all) : [tensor<4xf32>, tensor<16xf32>] access [1, 2] at [0, 0] over @data_ranks on @compute -> !plan.token
    plan.kernel "elementwise" #program(%g, %y) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.await %t
  }
  plan.program "step" {
    plan.call @forward microbatch 0
  }
}

// -----

// Tests a role that holds a value for two micro-batches at once: where its arena is no smaller for it, results stay where they are.
// CHECK-LABEL: plan.role @main
// CHECK-LABEL:   plan.routine @backward
// CHECK-NEXT:      plan.kernel "elementwise" {{.*}}(%[[LAST:.*]], %[[A:.*]]) :
// CHECK-NEXT:      plan.kernel "transpose" {{.*}}(%[[A]], %{{.*}}) :
#program = {constants = array<f64>, program = array<i64>, results = array<i64: 0>}
#same = {perm = array<i64: 0>}
plan.role @main ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %last = plan.buffer "last" in @device bytes 16 scope slot category activations slots 1
  %a = plan.buffer "a" in @device bytes 16 scope call category activations slots 1
  %b = plan.buffer "b" in @device bytes 16 scope call category activations slots 1
  plan.routine @forward phase forward stage 0 {
    plan.fill(%last) : [tensor<4xf32>] access [2] at [0] on @compute
  }
  plan.routine @backward phase backward stage 0 {
    plan.kernel "elementwise" #program(%last, %a) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "transpose" #same(%a, %b) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.program "step" {
    plan.call @forward microbatch 0
    plan.call @forward microbatch 1
    plan.call @backward microbatch 0
    plan.call @backward microbatch 1
  }
}
