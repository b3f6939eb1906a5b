// RUN: ds-opt %s --ds-offload-gradients=least-bytes=64 --ds-offload-optimizer=least-bytes=64 --ds-run-on-host | FileCheck %s

// Tests a table that is used twice: its gradient is the sum of one that is computed first and one that is made of few rows. The first
// leaves as soon as it is there; the rows leave, and the host makes the second and the sum, in the same order.
// CHECK:       %[[G:.*]] = plan.buffer "g" in @host bytes 256 scope step category gradients
// CHECK:       plan.routine @backward
// CHECK-NEXT:    plan.kernel "neg" {}(%{{.*}}, %[[A:[a-z0-9]+]])
// CHECK-NEXT:    plan.copy(%[[A]], %[[FIRST:[a-z0-9]+]])
// CHECK-NEXT:    plan.kernel "neg" {}(%{{.*}}, %[[DY:[a-z0-9]+]])
// CHECK-NEXT:    plan.copy(%[[DY]], %[[ROWS:[a-z0-9]+]])
// CHECK-NEXT:    plan.copy(%{{.*}}, %[[IDS:[a-z0-9]+]])
// CHECK-NEXT:    plan.kernel "gather_grad" {{.*}}(%[[ROWS]], %[[IDS]], %[[B:[a-z0-9]+]])
// CHECK-NEXT:    plan.kernel "elementwise" {}(%[[FIRST]], %[[B]], %[[S:[a-z0-9]+]])
// CHECK-NEXT:    plan.kernel "elementwise" {}(%[[S]], %[[G]])
// CHECK-NEXT:    plan.kernel "gather_grad" {{.*}}(%{{.*}}, %[[NEAR:[a-z0-9]+]])
// CHECK-NEXT:    plan.kernel "elementwise" {}(%[[NEAR]], %[[MADE:[a-z0-9]+]])
// CHECK-NEXT:    plan.copy(%[[MADE]], %[[H:[a-z0-9]+]])
// CHECK-NEXT:  }
plan.role @r ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %w = plan.buffer "w" in @device bytes 256 scope plan category weights slots 1 of @w
  %m = plan.buffer "m" in @device bytes 256 scope plan category optimizer slots 1 of @m
  %n = plan.buffer "n" in @device bytes 256 scope plan category optimizer slots 1 of @n
  %g = plan.buffer "g" in @device bytes 256 scope step category gradients slots 1
  %h = plan.buffer "h" in @device bytes 256 scope step category gradients slots 1
  %few = plan.buffer "few" in @device bytes 16 scope step category activations slots 1
  %many = plan.buffer "many" in @device bytes 160 scope step category activations slots 1
  %x = plan.buffer "x" in @device bytes 320 scope step category activations slots 1
  %a = plan.buffer "a" in @device bytes 256 scope call category activations slots 1
  %dy = plan.buffer "dy" in @device bytes 32 scope call category activations slots 1
  %b = plan.buffer "b" in @device bytes 256 scope call category activations slots 1
  %s = plan.buffer "s" in @device bytes 256 scope call category activations slots 1
  %c = plan.buffer "c" in @device bytes 256 scope call category activations slots 1
  plan.routine @backward phase backward stage 0 {
    plan.kernel "neg" {} (%x, %a) : [tensor<16x4xf32>, tensor<16x4xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "neg" {} (%x, %dy) : [tensor<2x4xf32>, tensor<2x4xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "gather_grad" {axis = 0 : i64} (%dy, %few, %b) : [tensor<2x4xf32>, tensor<2xi64>, tensor<16x4xf32>] access [1, 1, 2] at [0, 0, 0] on @compute
    plan.kernel "elementwise" {} (%a, %b, %s) : [tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x4xf32>] access [1, 1, 2] at [0, 0, 0] on @compute
    plan.kernel "elementwise" {} (%s, %g) : [tensor<16x4xf32>, tensor<16x4xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "gather_grad" {axis = 0 : i64} (%x, %many, %c) : [tensor<20x4xf32>, tensor<20xi64>, tensor<16x4xf32>] access [1, 1, 2] at [0, 0, 0] on @compute
    plan.kernel "elementwise" {} (%c, %h) : [tensor<16x4xf32>, tensor<16x4xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.routine @update phase update {
    plan.kernel "sgd" {} (%w, %g, %m) : [tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x4xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
    plan.kernel "sgd" {} (%w, %h, %n) : [tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x4xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
  }
  plan.program "step" {
    plan.call @backward microbatch 0
    plan.call @update microbatch 0
  }
}
