// RUN: ds-opt %s --ds-keep-optimizer-state=share=0.6 | FileCheck %s
// RUN: ds-opt %s --ds-keep-optimizer-state=share=1 | FileCheck %s --check-prefix=ALL
// RUN: ds-opt %s --ds-keep-optimizer-state=share=0.6 --ds-offload-parameters="space=host for-step=true" --ds-offload-gradients --ds-offload-optimizer --ds-run-on-host | FileCheck %s --check-prefix=LEFT
// RUN: ds-opt %s --ds-keep-optimizer-state=share=0.6 --ds-offload-parameters="space=host host-updates=true" --ds-offload-optimizer --ds-run-on-host | FileCheck %s --check-prefix=AWAY

// Tests that a share of 0.6, of 45,056 bytes in all, keeps the state of the parameter that the forward uses first; not of the next, which is
// too large for what is left; and of the one behind it. Both moments of a parameter stay or leave together; small ones are left out.
// CHECK-LABEL: plan.role @r
// CHECK:         plan.buffer "last.m" {{.*}} of @lm stays
// CHECK:         plan.buffer "large.m" {{.*}} of @bm{{$}}
// CHECK:         plan.buffer "large.v" {{.*}} of @bv{{$}}
// CHECK:         plan.buffer "first.m" {{.*}} of @fm stays
// CHECK:         plan.buffer "first.v" {{.*}} of @fv stays
// CHECK:         plan.buffer "small.m" {{.*}} of @sm{{$}}

// ALL:           plan.buffer "last.m" {{.*}} of @lm stays
// ALL:           plan.buffer "large.m" {{.*}} of @bm stays
// ALL:           plan.buffer "large.v" {{.*}} of @bv stays
// ALL:           plan.buffer "first.m" {{.*}} of @fm stays
// ALL:           plan.buffer "first.v" {{.*}} of @fv stays

// Tests that of what stays neither parameter nor gradient leaves, and that its update has no copies.
// LEFT-DAG:      %[[FIRST:[a-z0-9]+]] = plan.buffer "first" in @device
// LEFT-DAG:      %[[FM:[a-z0-9]+]] = plan.buffer "first.m" in @device
// LEFT-DAG:      %[[FV:[a-z0-9]+]] = plan.buffer "first.v" in @device
// LEFT-DAG:      %[[GF:[a-z0-9]+]] = plan.buffer "gf" in @device
// LEFT-DAG:      plan.buffer "large" in @host
// LEFT-DAG:      plan.buffer "large.m" in @host
// LEFT-DAG:      plan.buffer "gb" in @host
// LEFT:          plan.routine @update
// LEFT-NOT:        plan.copy(%[[GF]]
// LEFT:            plan.kernel "adamw" {}(%[[FIRST]], %[[GF]], %[[FM]], %[[FV]])

// Tests that a parameter which leaves all the same comes to its update on the device, and goes back.
// AWAY:          %[[AWAY:[a-z0-9]+]] = plan.buffer "first" in @host
// AWAY:          %[[FM:[a-z0-9]+]] = plan.buffer "first.m" in @device
// AWAY:          plan.routine @update
// AWAY:            plan.copy(%[[AWAY]], %[[NEAR:[a-z0-9]+]])
// AWAY:            plan.kernel "adamw" {}(%[[NEAR]], %{{[a-z0-9]+}}, %[[FM]],
// AWAY-NEXT:       plan.copy(%[[NEAR]], %[[AWAY]])
plan.role @r ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %last = plan.buffer "last" in @device bytes 4096 scope plan category weights slots 1 of @last
  %large = plan.buffer "large" in @device bytes 16384 scope plan category weights slots 1 of @large
  %first = plan.buffer "first" in @device bytes 4096 scope plan category weights slots 1 of @first
  %small = plan.buffer "small" in @device bytes 16 scope plan category weights slots 1 of @small
  %lm = plan.buffer "last.m" in @device bytes 4096 scope plan category optimizer slots 1 of @lm
  %bm = plan.buffer "large.m" in @device bytes 16384 scope plan category optimizer slots 1 of @bm
  %bv = plan.buffer "large.v" in @device bytes 16384 scope plan category optimizer slots 1 of @bv
  %fm = plan.buffer "first.m" in @device bytes 4096 scope plan category optimizer slots 1 of @fm
  %fv = plan.buffer "first.v" in @device bytes 4096 scope plan category optimizer slots 1 of @fv
  %sm = plan.buffer "small.m" in @device bytes 16 scope plan category optimizer slots 1 of @sm
  %gl = plan.buffer "gl" in @device bytes 4096 scope step category gradients slots 1
  %gb = plan.buffer "gb" in @device bytes 16384 scope step category gradients slots 1
  %gf = plan.buffer "gf" in @device bytes 4096 scope step category gradients slots 1
  %gs = plan.buffer "gs" in @device bytes 16 scope step category gradients slots 1
  plan.routine @forward phase forward stage 0 {
    plan.kernel "neg" {}(%small, %gs) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "neg" {}(%first, %gf) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "neg" {}(%large, %gb) : [tensor<4096xf32>, tensor<4096xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "neg" {}(%last, %gl) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.routine @update phase update {
    plan.kernel "sgd" {}(%last, %gl, %lm) : [tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
    plan.kernel "adamw" {}(%large, %gb, %bm, %bv) : [tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>] access [3, 1, 3, 3] at [0, 0, 0, 0] on @compute
    plan.kernel "adamw" {}(%first, %gf, %fm, %fv) : [tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>] access [3, 1, 3, 3] at [0, 0, 0, 0] on @compute
    plan.kernel "sgd" {}(%small, %gs, %sm) : [tensor<4xf32>, tensor<4xf32>, tensor<4xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
  }
  plan.program "step" {
    plan.call @forward microbatch 0
    plan.call @update microbatch 0
  }
}
