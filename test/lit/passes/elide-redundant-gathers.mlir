// RUN: ds-opt %s --ds-elide-redundant-gathers | FileCheck %s
// RUN: ds-opt %s --ds-elide-redundant-gathers=max-reuse-distance=999 | FileCheck %s --check-prefix=FAR
// RUN: ds-opt %s --ds-elide-redundant-gathers=max-live=8191 | FileCheck %s --check-prefix=LIVE
// RUN: ds-opt %s --ds-elide-redundant-gathers=max-live=8192 | FileCheck %s

// Tests that p, q, p, p needs two gathers where there is room, and three where 1000 elements of q are too many between the uses
// of p, or where not both buckets of 4096 may be gathered at once. Uses with nothing between them always share one.
// CHECK-LABEL: dist.fragment @forward
// CHECK:         %[[P:.*]] = dist.all_gather
// CHECK-NEXT:    dist.view %[[P]]
// CHECK:         %[[Q:.*]] = dist.all_gather
// CHECK-NEXT:    dist.view %[[Q]]
// CHECK-NOT:     dist.all_gather
// CHECK:         dist.view %[[P]]
// CHECK:         dist.view %[[P]]
// FAR-COUNT-3: dist.all_gather
// FAR-NOT:     dist.all_gather
// LIVE-COUNT-3: dist.all_gather
// LIVE-NOT:     dist.all_gather
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
  %own3 = train.read @zp : tensor<1024xf32>
  %all3 = dist.all_gather %own3 on @mesh axis "data" : (tensor<1024xf32>) -> tensor<4096xf32>
  %p3 = dist.view %all3 at 0 : tensor<4096xf32> -> tensor<1024xf32>
  %u3 = train.exp %p3 : (tensor<1024xf32>) -> tensor<1024xf32>
}
