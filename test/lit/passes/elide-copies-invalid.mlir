// This pass has no error of its own; here is what it must leave alone.
// RUN: ds-opt %s --ds-elide-copies --split-input-file | FileCheck %s

// Tests that a copy stays where the target is read after the source has been computed.
// CHECK-LABEL: plan.role @main
// CHECK:           plan.kernel "exp" {}(%{{.*}}, %[[Y:.*]]) :
// CHECK-NEXT:      plan.kernel "neg" {}(%[[M:.*]], %{{.*}}) :
// CHECK-NEXT:      plan.kernel "elementwise" {{.*}}(%[[Y]], %[[M]]) :
plan.role @main ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %x = plan.buffer "x" in @device bytes 16 scope slot category inputs slots 1
  %y = plan.buffer "y" in @device bytes 16 scope call category activations slots 1
  %m = plan.buffer "m" in @device bytes 16 scope step category activations slots 1
  %z = plan.buffer "z" in @device bytes 16 scope call category activations slots 1
  plan.routine @update phase update {
    plan.kernel "exp" {}(%x, %y) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "neg" {}(%m, %z) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "elementwise" {constants = array<f64>, program = array<i64: 1, 7, 0, -1, -1>, results = array<i64: 1>}(%y, %m) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
  }
}

// -----

// Tests that a copy stays where the command that computes the source reads the target.
// CHECK-LABEL: plan.role @main
// CHECK:           plan.kernel "exp" {}(%[[M:.*]], %[[Y:.*]]) :
// CHECK-NEXT:      plan.kernel "elementwise" {{.*}}(%[[Y]], %[[M]]) :
plan.role @main ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %y = plan.buffer "y" in @device bytes 16 scope call category activations slots 1
  %m = plan.buffer "m" in @device bytes 16 scope step category activations slots 1
  plan.routine @update phase update {
    plan.kernel "exp" {}(%m, %y) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "elementwise" {constants = array<f64>, program = array<i64: 1, 7, 0, -1, -1>, results = array<i64: 1>}(%y, %m) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
  }
}

// -----

// Tests that a copy stays where the target is written again before the source is read last.
// CHECK-LABEL: plan.role @main
// CHECK:           plan.kernel "exp" {}(%{{.*}}, %[[Y:.*]]) :
// CHECK-NEXT:      plan.kernel "elementwise" {{.*}}(%[[Y]], %[[M:.*]]) :
// CHECK-NEXT:      plan.kernel "neg" {}(%{{.*}}, %[[M]]) :
// CHECK-NEXT:      plan.kernel "neg" {}(%[[Y]], %{{.*}}) :
plan.role @main ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %x = plan.buffer "x" in @device bytes 16 scope slot category inputs slots 1
  %y = plan.buffer "y" in @device bytes 16 scope call category activations slots 1
  %m = plan.buffer "m" in @device bytes 16 scope step category activations slots 1
  %z = plan.buffer "z" in @device bytes 16 scope call category activations slots 1
  plan.routine @update phase update {
    plan.kernel "exp" {}(%x, %y) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "elementwise" {constants = array<f64>, program = array<i64: 1, 7, 0, -1, -1>, results = array<i64: 1>}(%y, %m) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "neg" {}(%x, %m) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "neg" {}(%y, %z) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
  }
}

// -----

// Tests that a copy of what others hold, or of a part of a buffer, stays.
// CHECK-LABEL: plan.role @main
// CHECK:           plan.kernel "exp" {}(%[[X:.*]], %[[Y:.*]]) :
// CHECK-NEXT:      plan.kernel "elementwise" {{.*}}(%[[X]], %{{.*}}) :
// CHECK-NEXT:      plan.kernel "elementwise" {{.*}}(%[[Y]], %{{.*}}) :
plan.role @main ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %x = plan.buffer "x" in @device bytes 16 scope slot category inputs slots 1
  %y = plan.buffer "y" in @device bytes 32 scope call category activations slots 1
  %m = plan.buffer "m" in @device bytes 16 scope step category activations slots 1
  %h = plan.buffer "h" in @device bytes 16 scope slot category activations slots 1
  plan.routine @update phase update {
    plan.kernel "exp" {}(%x, %y) : [tensor<4xf32>, tensor<8xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "elementwise" {constants = array<f64>, program = array<i64: 1, 7, 0, -1, -1>, results = array<i64: 1>}(%x, %m) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "elementwise" {constants = array<f64>, program = array<i64: 1, 7, 0, -1, -1>, results = array<i64: 1>}(%y, %h) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
  }
}
