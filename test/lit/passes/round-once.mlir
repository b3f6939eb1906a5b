// RUN: ds-opt %s --ds-round-once="keeps=true microbatches=4" | FileCheck %s
// RUN: ds-opt %s --ds-round-once=keeps=true | FileCheck %s --check-prefix=ONE
// RUN: ds-opt %s --ds-round-once | FileCheck %s --check-prefix=MERGE

// Tests that with several micro-batches casts move to the fragment @gather, which a step calls once; that the slice of a
// bucket is kept like a parameter; that what is read in float32, gradients and evaluations stay as they are.
// CHECK:       dist.value @"p::rounded" : tensor<64xbf16> for_step
// CHECK-LABEL: dist.fragment @gather
// CHECK-NEXT:    %[[P:.*]] = train.read @p
// CHECK-NEXT:    %[[LOWP:.*]] = train.cast %[[P]] to bf16 : (tensor<64xf32>) -> tensor<64xbf16>
// CHECK-NEXT:    dist.store %[[LOWP]] as @"p::rounded"
// CHECK-NEXT:    %[[Z:.*]] = train.read @z
// CHECK-NEXT:    %[[LOWZ:.*]] = train.cast %[[Z]] to bf16
// CHECK-NEXT:    dist.store %[[LOWZ]] as @"z::rounded"
// CHECK:       dist.value @"z::rounded" : tensor<1024xbf16> for_step
// CHECK-LABEL: dist.fragment @forward
// CHECK-NEXT:    %[[HERE:.*]] = dist.load @"p::rounded"
// CHECK-NEXT:    train.exp %[[HERE]]
// CHECK-NEXT:    train.exp %[[HERE]]
// CHECK-NEXT:    %[[SLICE:.*]] = dist.load @"z::rounded"
// CHECK-NEXT:    dist.all_gather %[[SLICE]]
// CHECK:         %[[WIDE:.*]] = train.read @p
// CHECK-NEXT:    train.exp %[[WIDE]]
// CHECK-LABEL: dist.fragment @backward
// CHECK-NEXT:    dist.load @"p::rounded"
// CHECK:         %[[G:.*]] = train.read @g
// CHECK-NEXT:    train.cast %[[G]] to bf16
// CHECK-LABEL: dist.fragment @evaluate
// CHECK-NEXT:    train.read @p
// CHECK-NEXT:    train.cast
// CHECK-LABEL: dist.program @step
// CHECK-NEXT:    dist.call @gather microbatch 0
// CHECK-NEXT:    dist.call @forward microbatch 0
// CHECK-LABEL: dist.program @evaluate
// CHECK-NEXT:    dist.call @evaluate microbatch 0

// Tests that with one micro-batch the forward keeps its cast for the backward, and that a fragment alone needs no value.
// ONE-NOT:   @gather
// ONE-LABEL: dist.value @"p::rounded" : tensor<64xbf16> for_step
// ONE-LABEL: dist.fragment @forward
// ONE-NEXT:    train.read @p
// ONE-NEXT:    %[[LOWP:.*]] = train.cast
// ONE-NEXT:    dist.store %[[LOWP]] as @"p::rounded"
// ONE-NEXT:    train.exp %[[LOWP]]
// ONE-NEXT:    train.exp %[[LOWP]]
// ONE:         train.read @z
// ONE-NEXT:    train.cast
// ONE-LABEL: dist.fragment @backward
// ONE-NEXT:    dist.load @"p::rounded"

// Tests that without keeps a fragment casts once.
// MERGE-NOT:   dist.value
// MERGE-LABEL: dist.fragment @forward
// MERGE-NEXT:    train.read @p
// MERGE-NEXT:    %[[LOWP:.*]] = train.cast
// MERGE-NEXT:    train.exp %[[LOWP]]
// MERGE-NEXT:    train.exp %[[LOWP]]
// MERGE-LABEL: dist.fragment @backward
// MERGE-NEXT:    train.read @p
// MERGE-NEXT:    train.cast
dist.mesh @mesh ["pipe", "data"] [1, 4]
train.variable parameter @p : tensor<64xf32> from #train.fill<0.0> {trainable}
train.variable parameter @q : tensor<4096xf32> from #train.fill<0.0> {trainable}
train.variable gradient @g of @p : tensor<64xf32>
dist.bucket @z on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@q] at [0]
dist.fragment @forward phase forward stage 0 {
  %p0 = train.read @p : tensor<64xf32>
  %low0 = train.cast %p0 to bf16 : (tensor<64xf32>) -> tensor<64xbf16>
  %a = train.exp %low0 : (tensor<64xbf16>) -> tensor<64xbf16>
  %p1 = train.read @p : tensor<64xf32>
  %low1 = train.cast %p1 to bf16 : (tensor<64xf32>) -> tensor<64xbf16>
  %b = train.exp %low1 : (tensor<64xbf16>) -> tensor<64xbf16>
  %z = train.read @z : tensor<1024xf32>
  %slice = train.cast %z to bf16 : (tensor<1024xf32>) -> tensor<1024xbf16>
  %whole = dist.all_gather %slice on @mesh axis "data" : (tensor<1024xbf16>) -> tensor<4096xbf16>
  %p2 = train.read @p : tensor<64xf32>
  %c = train.exp %p2 : (tensor<64xf32>) -> tensor<64xf32>
}
dist.fragment @backward phase backward stage 0 {
  %p = train.read @p : tensor<64xf32>
  %low = train.cast %p to bf16 : (tensor<64xf32>) -> tensor<64xbf16>
  %a = train.exp %low : (tensor<64xbf16>) -> tensor<64xbf16>
  %g = train.read @g : tensor<64xf32>
  %lowG = train.cast %g to bf16 : (tensor<64xf32>) -> tensor<64xbf16>
  %b = train.exp %lowG : (tensor<64xbf16>) -> tensor<64xbf16>
}
dist.fragment @evaluate phase evaluate stage 0 {
  %p = train.read @p : tensor<64xf32>
  %low = train.cast %p to bf16 : (tensor<64xf32>) -> tensor<64xbf16>
  %a = train.exp %low : (tensor<64xbf16>) -> tensor<64xbf16>
}
dist.role @rank ranks [0, 0] {
  dist.program @step {
    dist.call @forward microbatch 0
    dist.call @backward microbatch 0
  }
  dist.program @evaluate {
    dist.call @evaluate microbatch 0
  }
}
