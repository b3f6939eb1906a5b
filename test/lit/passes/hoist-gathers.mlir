// RUN: ds-opt %s --ds-hoist-gathers=prefetch=4096 | FileCheck %s
// RUN: ds-opt %s --ds-hoist-gathers=prefetch=4095 | FileCheck %s --check-prefix=NONE
// RUN: ds-opt %s --ds-hoist-gathers="prefetch=8192 max-live=8192" | FileCheck %s --check-prefix=LIVE

// Tests that a gather begins before the use of the one before it, as far as the prefetch allows, and that the order stays.
// CHECK-LABEL: dist.fragment @forward
// CHECK:         %[[FIRST:.*]] = dist.all_gather
// CHECK-NEXT:    train.read @zq
// CHECK-NEXT:    %[[SECOND:.*]] = dist.all_gather
// CHECK-NEXT:    dist.view %[[FIRST]]
// CHECK-NEXT:    train.exp
// CHECK-NEXT:    train.read @zp
// CHECK-NEXT:    %[[THIRD:.*]] = dist.all_gather
// CHECK-NEXT:    dist.view %[[SECOND]]
// CHECK-NEXT:    train.exp
// CHECK-NEXT:    dist.view %[[THIRD]]

// NONE-LABEL: dist.fragment @forward
// NONE:         dist.all_gather
// NONE-NEXT:    dist.view
// NONE-NEXT:    train.exp
// NONE-NEXT:    train.read
// NONE-NEXT:    dist.all_gather
// NONE-NEXT:    dist.view

// Tests that no more than 8192 elements are gathered at once.
// LIVE-LABEL: dist.fragment @forward
// LIVE:         dist.all_gather
// LIVE-NEXT:    train.read
// LIVE-NEXT:    dist.all_gather
// LIVE-NEXT:    dist.view
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
  %own2 = train.read @zp : tensor<1024xf32>
  %all2 = dist.all_gather %own2 on @mesh axis "data" : (tensor<1024xf32>) -> tensor<4096xf32>
  %p2 = dist.view %all2 at 0 : tensor<4096xf32> -> tensor<1024xf32>
  %u2 = train.exp %p2 : (tensor<1024xf32>) -> tensor<1024xf32>
}
