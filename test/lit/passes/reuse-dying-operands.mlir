// RUN: ds-opt %s --ds-reuse-dying-operands --split-input-file | FileCheck %s

// Tests that a sum takes the bytes of the operand that nothing reads later, and who reads the sum reads them there.
// CHECK-LABEL: plan.role @main
// CHECK-NOT:     plan.buffer "sum"
// CHECK-LABEL:   plan.routine @forward
// CHECK-NEXT:      plan.kernel "elementwise" {{.*}}(%[[X:.*]], %[[Y:.*]], %[[Y]]) :
// CHECK-NEXT:      plan.kernel "transpose" {{.*}}(%[[Y]], %[[Z:.*]]) :
// CHECK-NEXT:      plan.kernel "elementwise" {{.*}}(%[[X]], %[[Z]], %[[X]]) :
// CHECK-NEXT:      plan.kernel "transpose" {{.*}}(%[[X]], %{{.*}}) :
#program = {constants = array<f64>, program = array<i64>, results = array<i64: 0>}
#same = {perm = array<i64: 0>}
plan.role @main ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %x = plan.buffer "x" in @device bytes 16 scope call category activations slots 1
  %y = plan.buffer "y" in @device bytes 16 scope call category activations slots 1
  %sum = plan.buffer "sum" in @device bytes 16 scope call category activations slots 1
  %z = plan.buffer "z" in @device bytes 16 scope call category activations slots 1
  %u = plan.buffer "u" in @device bytes 16 scope call category activations slots 1
  %v = plan.buffer "v" in @device bytes 16 scope call category activations slots 1
  plan.routine @forward phase forward stage 0 {
    plan.kernel "elementwise" #program(%x, %y, %sum) : [tensor<4xf32>, tensor<4xf32>, tensor<4xf32>] access [1, 1, 2] at [0, 0, 0] on @compute
    plan.kernel "transpose" #same(%sum, %z) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "elementwise" #program(%x, %z, %u) : [tensor<4xf32>, tensor<4xf32>, tensor<4xf32>] access [1, 1, 2] at [0, 0, 0] on @compute
    plan.kernel "transpose" #same(%u, %v) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.program "step" {
    plan.call @forward microbatch 0
  }
}

// -----

// Tests that a value of an earlier routine gives its bytes away where no later call of the micro-batch uses it: @last, not @more.
// CHECK-LABEL: plan.role @main
// CHECK-LABEL:   plan.routine @backward
// CHECK-NEXT:      plan.kernel "elementwise" {{.*}}(%[[LAST:.*]], %[[LAST]]) :
// CHECK-NEXT:      plan.kernel "elementwise" {{.*}}(%[[MORE:.*]], %[[OWN:.*]]) :
// CHECK-NEXT:      plan.kernel "transpose" {{.*}}(%[[LAST]], %{{.*}}) :
// CHECK-NEXT:      plan.kernel "transpose" {{.*}}(%[[OWN]], %{{.*}}) :
// CHECK-LABEL:   plan.routine @update
// CHECK-NEXT:      plan.kernel "elementwise" {{.*}}(%[[MORE]], %[[MORE]]) :
#program = {constants = array<f64>, program = array<i64>, results = array<i64: 0>}
#same = {perm = array<i64: 0>}
plan.role @main ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %last = plan.buffer "last" in @device bytes 16 scope slot category activations slots 1
  %more = plan.buffer "more" in @device bytes 16 scope slot category activations slots 1
  %a = plan.buffer "a" in @device bytes 16 scope call category activations slots 1
  %b = plan.buffer "b" in @device bytes 16 scope call category activations slots 1
  %c = plan.buffer "c" in @device bytes 16 scope call category activations slots 1
  %d = plan.buffer "d" in @device bytes 16 scope call category activations slots 1
  %e = plan.buffer "e" in @device bytes 16 scope call category activations slots 1
  plan.routine @forward phase forward stage 0 {
    plan.fill(%last) : [tensor<4xf32>] access [2] at [0] on @compute
    plan.fill(%more) : [tensor<4xf32>] access [2] at [0] on @compute
  }
  plan.routine @backward phase backward stage 0 {
    plan.kernel "elementwise" #program(%last, %a) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "elementwise" #program(%more, %b) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "transpose" #same(%a, %c) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "transpose" #same(%b, %d) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.routine @update phase update {
    plan.kernel "elementwise" #program(%more, %e) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.program "step" {
    plan.call @forward microbatch 0
    plan.call @backward microbatch 0
    plan.call @update microbatch 0
    plan.call @forward microbatch 1
    plan.call @backward microbatch 1
    plan.call @update microbatch 1
  }
}

// -----

// Tests that a result which later routines read gets the operand into its bytes, not itself into the operand's.
// CHECK-LABEL: plan.role @main
// CHECK-LABEL:   plan.routine @forward
// CHECK-NEXT:      plan.kernel "transpose" {{.*}}(%{{.*}}, %[[H:.*]]) :
// CHECK-NEXT:      plan.kernel "elementwise" {{.*}}(%[[H]], %[[H]]) :
// CHECK-LABEL:   plan.routine @backward
// CHECK-NEXT:      plan.kernel "transpose" {{.*}}(%[[H]], %{{.*}}) :
#program = {constants = array<f64>, program = array<i64>, results = array<i64: 0>}
#same = {perm = array<i64: 0>}
plan.role @main ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %x = plan.buffer "x" in @device bytes 16 scope slot category inputs slots 1
  %y = plan.buffer "y" in @device bytes 16 scope call category activations slots 1
  %h = plan.buffer "h" in @device bytes 16 scope slot category activations slots 1
  %z = plan.buffer "z" in @device bytes 16 scope call category activations slots 1
  plan.routine @forward phase forward stage 0 {
    plan.kernel "transpose" #same(%x, %y) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "elementwise" #program(%y, %h) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.routine @backward phase backward stage 0 {
    plan.kernel "transpose" #same(%h, %z) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.program "step" {
    plan.call @forward microbatch 0
    plan.call @backward microbatch 0
  }
}

// -----

// Tests the gradients that may: of the cross entropy over the logits, of a norm over what flows into it, here the first operand that dies.
// CHECK-LABEL: plan.role @main
// CHECK-LABEL:   plan.routine @backward
// CHECK-NEXT:      plan.kernel "cross_entropy_grad" {{.*}}(%[[L:.*]], %{{.*}}, %{{.*}}, %{{.*}}, %[[L]]) :
// CHECK-NEXT:      plan.kernel "rms_norm_grad" {}(%[[L]], %[[X:.*]], %{{.*}}, %{{.*}}, %[[L]], %{{.*}}) :
// CHECK-NEXT:      plan.kernel "layer_norm_grad" {}(%[[L]], %[[X]], %{{.*}}, %{{.*}}, %{{.*}}, %[[X]], %{{.*}}, %{{.*}}) :
// CHECK-NEXT:      plan.kernel "transpose" {{.*}}(%[[X]], %[[L]]) :
#loss = {ignore_index = -100 : i64, reduction = "mean"}
#same2 = {perm = array<i64: 0, 1>}
plan.role @main ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %logits = plan.buffer "logits" in @device bytes 32 scope slot category activations slots 1
  %x = plan.buffer "x" in @device bytes 32 scope slot category activations slots 1
  %labels = plan.buffer "labels" in @device bytes 16 scope slot category inputs slots 1
  %lse = plan.buffer "lse" in @device bytes 8 scope slot category activations slots 1
  %one = plan.buffer "one" in @device bytes 4 scope slot category activations slots 1
  %gamma = plan.buffer "gamma" in @device bytes 16 scope slot category activations slots 1
  %g = plan.buffer "g" in @device bytes 32 scope call category activations slots 1
  %dx = plan.buffer "dx" in @device bytes 32 scope call category activations slots 1
  %dz = plan.buffer "dz" in @device bytes 32 scope call category activations slots 1
  %dgamma = plan.buffer "dgamma" in @device bytes 16 scope call category activations slots 1
  %dbeta = plan.buffer "dbeta" in @device bytes 16 scope call category activations slots 1
  plan.routine @backward phase backward stage 0 {
    plan.kernel "cross_entropy_grad" #loss(%logits, %labels, %lse, %one, %g) : [tensor<2x4xf32>, tensor<2xi64>, tensor<2xf32>, tensor<f32>, tensor<2x4xf32>] access [1, 1, 1, 1, 2] at [0, 0, 0, 0, 0] on @compute
    plan.kernel "rms_norm_grad" {}(%g, %x, %gamma, %lse, %dx, %dgamma) : [tensor<2x4xf32>, tensor<2x4xf32>, tensor<4xf32>, tensor<2xf32>, tensor<2x4xf32>, tensor<4xf32>] access [1, 1, 1, 1, 2, 2] at [0, 0, 0, 0, 0, 0] on @compute
    plan.kernel "layer_norm_grad" {}(%dx, %x, %gamma, %lse, %lse, %dz, %dgamma, %dbeta) : [tensor<2x4xf32>, tensor<2x4xf32>, tensor<4xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>] access [1, 1, 1, 1, 1, 2, 2, 2] at [0, 0, 0, 0, 0, 0, 0, 0] on @compute
    plan.kernel "transpose" #same2(%dz, %dx) : [tensor<2x4xf32>, tensor<2x4xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.program "step" {
    plan.call @backward microbatch 0
  }
}

// -----

// Tests that what a copy to the host reads is not overwritten: compute would wait for its end.
// CHECK-LABEL: plan.role @main
// CHECK-LABEL:   plan.routine @forward
// CHECK-NEXT:      plan.fill(%[[X:.*]]) :
// CHECK-NEXT:      plan.copy(%[[X]], %{{.*}}) :
// CHECK-NEXT:      plan.kernel "elementwise" {{.*}}(%[[X]], %[[Y:.*]]) :
// CHECK-NEXT:      plan.kernel "elementwise" {{.*}}(%[[Y]], %[[Y]]) :
#program = {constants = array<f64>, program = array<i64>, results = array<i64: 0>}
plan.role @main ranks [0, 0] {
  plan.arena @device space device
  plan.arena @host space host
  plan.queue @compute kind compute
  %x = plan.buffer "x" in @device bytes 16 scope call category activations slots 1
  %there = plan.buffer "there" in @host bytes 16 scope call category activations slots 1
  %y = plan.buffer "y" in @device bytes 16 scope call category activations slots 1
  %z = plan.buffer "z" in @device bytes 16 scope call category activations slots 1
  plan.routine @forward phase forward stage 0 {
    plan.fill(%x) : [tensor<4xf32>] access [2] at [0] on @compute
    plan.copy(%x, %there) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "elementwise" #program(%x, %y) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "elementwise" #program(%y, %z) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.program "step" {
    plan.call @forward microbatch 0
  }
}
