// RUN: ds-opt %s "--ds-offload-parameters=least-bytes=64 for-step" --ds-offload-optimizer=least-bytes=64 --ds-run-on-host --ds-elide-copies | FileCheck %s --check-prefix=STEP
// RUN: ds-opt %s "--ds-offload-parameters=least-bytes=64 host-updates" --ds-offload-optimizer=least-bytes=64 --ds-run-on-host --ds-elide-copies | FileCheck %s --check-prefix=EACH

// Tests that a parameter which the device only rounds stays on the host, which rounds it at the start of the step: half the
// bytes come. An evaluation rounds for itself. A parameter that is also read as it is comes whole.
// STEP-DAG:    %[[W:.*]] = plan.buffer "w" in @host bytes 1024 scope plan
// STEP-DAG:    %[[B:.*]] = plan.buffer "b" in @host bytes 1024 scope plan
// STEP-DAG:    %[[NEAR:.*]] = plan.buffer "b" in @device bytes 1024 scope step
// STEP-DAG:    %[[R:.*]] = plan.buffer "w::rounded" in @device bytes 512 scope step
// STEP-NOT:    plan.buffer "w" in @device
// STEP:        plan.routine @gather
// STEP-NEXT:     plan.copy(%[[B]], %[[NEAR]])
// STEP-NEXT:     plan.kernel "elementwise" {{.*}}(%[[NEAR]], %[[RB:[a-z0-9]+]]) : [tensor<256xf32>, tensor<256xbf16>]
// STEP-NEXT:   }
// STEP:        plan.routine @forward
// STEP-NEXT:     plan.kernel "exp" {}(%[[R]],
// STEP-NEXT:     plan.kernel "exp" {}(%[[RB]],
// STEP-NEXT:     plan.kernel "exp" {}(%[[NEAR]],
// STEP:        plan.routine @evaluate
// STEP-NEXT:     plan.kernel "elementwise" {{.*}}(%[[W]], %[[HERE:[a-z0-9]+]])
// STEP-NEXT:     plan.copy(%[[HERE]], %[[X:[a-z0-9]+]]) : [tensor<256xbf16>, tensor<256xbf16>]
// STEP-NEXT:     plan.kernel "exp" {}(%[[X]],
// STEP:        plan.routine @start_step phase begin
// STEP-NEXT:     plan.kernel "elementwise" {{.*}}(%[[W]], %[[MADE:[a-z0-9]+]])
// STEP-NEXT:     plan.copy(%[[MADE]], %[[R]]) : [tensor<256xbf16>, tensor<256xbf16>]
// STEP-NEXT:   }

// Tests that where parameters come for each command, what is rounded lies on the host for the step, and comes instead.
// EACH-DAG:    %[[W:.*]] = plan.buffer "w" in @host bytes 1024 scope plan
// EACH-DAG:    %[[R:.*]] = plan.buffer "w::rounded" in @host bytes 512 scope step
// EACH-NOT:    plan.routine @gather
// EACH:        plan.routine @forward
// EACH-DAG:      plan.copy(%[[R]], %[[X:[a-z0-9]+]]) : [tensor<256xbf16>, tensor<256xbf16>]
// EACH-DAG:      plan.kernel "exp" {}(%[[X]],
// EACH:        plan.routine @evaluate
// EACH-NEXT:     plan.kernel "elementwise" {{.*}}(%[[W]], %[[HERE:[a-z0-9]+]])
// EACH-NEXT:     plan.copy(%[[HERE]], %[[X:[a-z0-9]+]]) : [tensor<256xbf16>, tensor<256xbf16>]
// EACH-NEXT:     plan.kernel "exp" {}(%[[X]],
// EACH:        plan.routine @start_step phase begin
// EACH-NEXT:     plan.kernel "elementwise" {{.*}}(%[[W]], %[[R]])
plan.role @r ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %w = plan.buffer "w" in @device bytes 1024 scope plan category weights slots 1 of @w
  %b = plan.buffer "b" in @device bytes 1024 scope plan category weights slots 1 of @b
  %m = plan.buffer "m" in @device bytes 1024 scope plan category optimizer slots 1 of @m
  %n = plan.buffer "n" in @device bytes 1024 scope plan category optimizer slots 1 of @n
  %g = plan.buffer "g" in @device bytes 1024 scope plan category gradients slots 1 of @g
  %o = plan.buffer "o" in @device bytes 512 scope call category activations slots 1
  %p = plan.buffer "p" in @device bytes 512 scope call category activations slots 1
  %q = plan.buffer "q" in @device bytes 512 scope call category activations slots 1
  %r = plan.buffer "w::rounded" in @device bytes 512 scope step category weights slots 1
  %s = plan.buffer "b::rounded" in @device bytes 512 scope step category weights slots 1
  %x = plan.buffer "x" in @device bytes 512 scope call category activations slots 1
  %y = plan.buffer "y" in @device bytes 1024 scope call category activations slots 1
  plan.routine @gather phase gather stage 0 {
    plan.kernel "elementwise" {constants = array<f64>, program = array<i64: 2, 9, 0, -1, -1>, results = array<i64: 1>}(%w, %o) : [tensor<256xf32>, tensor<256xbf16>] access [1, 2] at [0, 0] on @compute
    plan.kernel "elementwise" {constants = array<f64>, program = array<i64: 1, 9, 0, -1, -1>, results = array<i64: 1>}(%o, %r) : [tensor<256xbf16>, tensor<256xbf16>] access [1, 2] at [0, 0] on @compute
    plan.kernel "elementwise" {constants = array<f64>, program = array<i64: 2, 9, 0, -1, -1>, results = array<i64: 1>}(%b, %p) : [tensor<256xf32>, tensor<256xbf16>] access [1, 2] at [0, 0] on @compute
    plan.kernel "elementwise" {constants = array<f64>, program = array<i64: 1, 9, 0, -1, -1>, results = array<i64: 1>}(%p, %s) : [tensor<256xbf16>, tensor<256xbf16>] access [1, 2] at [0, 0] on @compute
  }
  plan.routine @forward phase forward stage 0 {
    plan.kernel "exp" {}(%r, %x) : [tensor<256xbf16>, tensor<256xbf16>] access [1, 2] at [0, 0] on @compute
    plan.kernel "exp" {}(%s, %x) : [tensor<256xbf16>, tensor<256xbf16>] access [1, 2] at [0, 0] on @compute
    plan.kernel "exp" {}(%b, %y) : [tensor<256xf32>, tensor<256xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.routine @update phase update {
    plan.kernel "sgd" {}(%w, %g, %m) : [tensor<256xf32>, tensor<256xf32>, tensor<256xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
    plan.kernel "sgd" {}(%b, %g, %n) : [tensor<256xf32>, tensor<256xf32>, tensor<256xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
  }
  plan.routine @evaluate phase evaluate stage 0 {
    plan.kernel "elementwise" {constants = array<f64>, program = array<i64: 2, 9, 0, -1, -1>, results = array<i64: 1>}(%w, %q) : [tensor<256xf32>, tensor<256xbf16>] access [1, 2] at [0, 0] on @compute
    plan.kernel "exp" {}(%q, %x) : [tensor<256xbf16>, tensor<256xbf16>] access [1, 2] at [0, 0] on @compute
  }
  plan.program "step" {
    plan.call @gather microbatch 0
    plan.call @forward microbatch 0
    plan.call @forward microbatch 1
    plan.call @update microbatch 1
  }
  plan.program "evaluate" {
    plan.call @evaluate microbatch 0
  }
}
