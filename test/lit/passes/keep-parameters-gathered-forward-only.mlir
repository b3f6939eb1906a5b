// RUN: ds-opt %s --ds-keep-parameters-gathered=microbatches=2 | FileCheck %s --check-prefix=STEP
// RUN: ds-opt %s --ds-keep-parameters-gathered | FileCheck %s --check-prefix=AGAIN
// RUN: ds-opt %s --ds-keep-parameters-gathered="microbatches=2 max-live=4096" | FileCheck %s --check-prefix=ROOM
// RUN: ds-opt %s --ds-keep-parameters-gathered="microbatches=2 max-reuse-distance=1999" | FileCheck %s --check-prefix=NEAR

// Tests that a step gathers once what the forward alone needs: @p.
// STEP-LABEL: dist.fragment @gather
// STEP:         train.read @zp
// STEP:       dist.value @"zp::whole" : tensor<4096xf32> of @zp for_step
// STEP-LABEL: dist.fragment @forward
// STEP-NOT:     dist.all_gather
// STEP:         dist.load @"zp::whole"

// Tests that it is gathered where it is used if there is one micro-batch, no room, or too much between.
// AGAIN-LABEL: dist.fragment @forward
// AGAIN:         train.read @zp

// ROOM-LABEL:  dist.fragment @forward
// ROOM:          train.read @zp

// NEAR-LABEL:  dist.fragment @forward
// NEAR:          train.read @zp
dist.mesh @mesh ["data"] [4]
train.variable parameter @p : tensor<1024xf32> from #train.fill<0.0> {trainable}
train.variable parameter @q : tensor<1000xf32> from #train.fill<0.0> {trainable}
dist.bucket @zp on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@p] at [0]
dist.bucket @zq on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@q] at [0]
dist.fragment @forward phase forward stage 0 {
  %own0 = train.read @zq : tensor<1024xf32>
  %all0 = dist.all_gather %own0 on @mesh axis "data" : (tensor<1024xf32>) -> tensor<4096xf32>
  %q0 = dist.view %all0 at 0 : tensor<4096xf32> -> tensor<1000xf32>
  %u0 = train.exp %q0 : (tensor<1000xf32>) -> tensor<1000xf32>
  %own1 = train.read @zp : tensor<1024xf32>
  %all1 = dist.all_gather %own1 on @mesh axis "data" : (tensor<1024xf32>) -> tensor<4096xf32>
  %p1 = dist.view %all1 at 0 : tensor<4096xf32> -> tensor<1024xf32>
  %u1 = train.exp %p1 : (tensor<1024xf32>) -> tensor<1024xf32>
}
dist.fragment @backward phase backward stage 0 {
  %own0 = train.read @zq : tensor<1024xf32>
  %all0 = dist.all_gather %own0 on @mesh axis "data" : (tensor<1024xf32>) -> tensor<4096xf32>
  %q0 = dist.view %all0 at 0 : tensor<4096xf32> -> tensor<1000xf32>
  %u0 = train.exp %q0 : (tensor<1000xf32>) -> tensor<1000xf32>
}
dist.role @main ranks [0, 3] {
  dist.program @step {
    dist.call @forward microbatch 0
    dist.call @backward microbatch 0
  }
}
