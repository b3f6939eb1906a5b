// RUN: ds-opt %s --ds-keep-parameters-gathered | FileCheck %s
// RUN: ds-opt %s --ds-keep-parameters-gathered=max-live=4096 | FileCheck %s --check-prefix=ONE
// RUN: ds-opt %s --ds-keep-parameters-gathered=max-reuse-distance=0 | FileCheck %s --check-prefix=NEAR
// RUN: ds-opt %s --ds-keep-parameters-gathered=microbatches=2 | FileCheck %s --check-prefix=STEP

// Tests that what the forward gathers is kept for the backward where both fit.
// CHECK:       dist.value @"zq::whole" : tensor<4096xf32> of @zq
// CHECK:       dist.value @"zp::whole" : tensor<4096xf32> of @zp
// CHECK-LABEL: dist.fragment @forward
// CHECK:         dist.store %{{.*}} as @"zp::whole"
// CHECK:         dist.store %{{.*}} as @"zq::whole"
// CHECK-LABEL: dist.fragment @backward
// CHECK-NOT:     dist.all_gather
// CHECK:         dist.load @"zq::whole"
// CHECK:         dist.load @"zp::whole"
// CHECK-LABEL: dist.role

// Tests that the one whose uses are nearest wins where one fits: q is used last in the forward, first in the backward.
// ONE-LABEL: dist.fragment @backward
// ONE:         dist.load @"zq::whole"
// ONE:         dist.all_gather

// NEAR-LABEL: dist.fragment @backward
// NEAR:         dist.load @"zq::whole"
// NEAR:         dist.all_gather

// Tests that with several micro-batches a step gathers once, first.
// STEP:       dist.value @"zq::whole" : tensor<4096xf32> of @zq for_step
// STEP-LABEL: dist.fragment @gather
// STEP-NEXT:    train.read @zq
// STEP-NEXT:    %[[Q:.*]] = dist.all_gather
// STEP-NEXT:    train.read @zp
// STEP-NEXT:    %[[P:.*]] = dist.all_gather
// STEP-NEXT:    dist.store %[[Q]] as @"zq::whole"
// STEP-NEXT:    dist.store %[[P]] as @"zp::whole"
// STEP-LABEL: dist.fragment @forward
// STEP-NOT:     dist.all_gather
// STEP-LABEL: dist.program @step
// STEP-NEXT:    dist.call @gather microbatch 0
// STEP-NEXT:    dist.call @forward microbatch 0
dist.mesh @mesh ["data"] [4]
train.variable parameter @p : tensor<1024xf32> from #train.fill<0.0> {trainable}
train.variable parameter @q : tensor<1000xf32> from #train.fill<0.0> {trainable}
dist.bucket @zp on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@p] at [0]
dist.bucket @zq on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@q] at [0]
dist.fragment @forward phase forward stage 0 {
  %own0 = train.read @zp : tensor<1024xf32>
  %all0 = dist.all_gather %own0 on @mesh axis "data" : (tensor<1024xf32>) -> tensor<4096xf32>
  %p0 = dist.view %all0 at 0 : tensor<4096xf32> -> tensor<1024xf32>
  %u0 = train.exp %p0 : (tensor<1024xf32>) -> tensor<1024xf32>
  %own1 = train.read @zq : tensor<1024xf32>
  %all1 = dist.all_gather %own1 on @mesh axis "data" : (tensor<1024xf32>) -> tensor<4096xf32>
  %q1 = dist.view %all1 at 0 : tensor<4096xf32> -> tensor<1000xf32>
  %u1 = train.exp %q1 : (tensor<1000xf32>) -> tensor<1000xf32>
}
dist.fragment @backward phase backward stage 0 {
  %own0 = train.read @zq : tensor<1024xf32>
  %all0 = dist.all_gather %own0 on @mesh axis "data" : (tensor<1024xf32>) -> tensor<4096xf32>
  %q0 = dist.view %all0 at 0 : tensor<4096xf32> -> tensor<1000xf32>
  %u0 = train.exp %q0 : (tensor<1000xf32>) -> tensor<1000xf32>
  %own1 = train.read @zp : tensor<1024xf32>
  %all1 = dist.all_gather %own1 on @mesh axis "data" : (tensor<1024xf32>) -> tensor<4096xf32>
  %p1 = dist.view %all1 at 0 : tensor<4096xf32> -> tensor<1024xf32>
  %u1 = train.exp %p1 : (tensor<1024xf32>) -> tensor<1024xf32>
}
dist.role @main ranks [0, 3] {
  dist.program @step {
    dist.call @forward microbatch 0
    dist.call @backward microbatch 0
  }
}
