// RUN: ds-opt %s --ds-elide-copies --split-input-file | FileCheck %s

// Tests that a value is computed where the copy would have put it, at its place in a larger buffer, and read from there.
// CHECK-LABEL: plan.role @main
// CHECK-NOT:     plan.buffer "y"
// CHECK-LABEL:   plan.routine @forward
// CHECK-NEXT:      plan.kernel "exp" {}(%[[X:.*]], %[[P:.*]]) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 32] on @compute
// CHECK-NEXT:      plan.kernel "sum" {}(%[[P]], %{{.*}}) : [tensor<2x2xf32>, tensor<f32>] access [1, 2] at [32, 0] on @compute
// CHECK-NEXT:    }
plan.role @main ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %x = plan.buffer "x" in @device bytes 16 scope slot category inputs slots 1
  %y = plan.buffer "y" in @device bytes 16 scope call category activations slots 1
  %s = plan.buffer "s" in @device bytes 4 scope call category activations slots 1
  %p = plan.buffer "p" in @device bytes 64 scope call category communication slots 1
  plan.routine @forward phase forward stage 0 {
    plan.kernel "exp" {}(%x, %y) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "elementwise" {constants = array<f64>, program = array<i64: 1, 7, 0, -1, -1>, results = array<i64: 1>}(%y, %p) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 32] on @compute
    plan.kernel "sum" {}(%y, %s) : [tensor<2x2xf32>, tensor<f32>] access [1, 2] at [0, 0] on @compute
  }
}

// -----

// Tests that of two copies the one into a value that outlives the call takes the source's place, though it comes later, and the other is
// made of that.
// CHECK-LABEL: plan.role @main
// CHECK-LABEL:   plan.routine @forward
// CHECK-NEXT:      plan.kernel "exp" {}(%{{.*}}, %[[H:.*]]) :
// CHECK-NEXT:      plan.kernel "elementwise" {{.*}}(%[[H]], %[[M:.*]]) :
// CHECK-NEXT:    }
plan.role @main ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %x = plan.buffer "x" in @device bytes 16 scope slot category inputs slots 1
  %y = plan.buffer "y" in @device bytes 16 scope call category activations slots 1
  %m = plan.buffer "m" in @device bytes 16 scope step category activations slots 1
  %h = plan.buffer "h" in @device bytes 16 scope slot category activations slots 1
  plan.routine @forward phase forward stage 0 {
    plan.kernel "exp" {}(%x, %y) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "elementwise" {constants = array<f64>, program = array<i64: 1, 7, 0, -1, -1>, results = array<i64: 1>}(%y, %m) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "elementwise" {constants = array<f64>, program = array<i64: 1, 7, 0, -1, -1>, results = array<i64: 1>}(%y, %h) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
  }
}

// -----

// Tests that a slice of what a rank holds whole is written where it lies on that rank.
// CHECK-LABEL: plan.role @main
// CHECK-LABEL:   plan.routine @update
// CHECK-NEXT:      plan.kernel "exp" {}(%{{.*}}, %{{.*}}) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] stride [0, 16] over @data_ranks on @compute
// CHECK-NEXT:    }
plan.communicator @data_ranks axes [0]
train.variable parameter @w : tensor<16xf32> from #train.fill<0.0>
plan.role @main ranks [0, 3] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %x = plan.buffer "x" in @device bytes 16 scope slot category inputs slots 1
  %y = plan.buffer "y" in @device bytes 16 scope call category activations slots 1
  %w = plan.buffer "w" in @device bytes 64 scope plan category weights slots 1 of @w
  plan.routine @update phase update {
    plan.kernel "exp" {}(%x, %y) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "elementwise" {constants = array<f64>, program = array<i64: 1, 7, 0, -1, -1>, results = array<i64: 1>}(%y, %w) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] stride [0, 16] over @data_ranks on @compute
  }
}
