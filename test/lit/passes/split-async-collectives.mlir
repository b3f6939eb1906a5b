// RUN: ds-opt %s --ds-split-async-collectives | FileCheck %s

// Tests that a gather is done before the view that reads it, and a sum before its state is read.
// CHECK-LABEL: dist.fragment @forward
// CHECK:         %[[T:.*]] = dist.all_gather_start
// CHECK-NEXT:    train.exp
// CHECK-NEXT:    %[[ALL:.*]] = dist.all_gather_done %[[T]]
// CHECK-NEXT:    dist.view %[[ALL]]
// CHECK:         %[[S:.*]] = dist.reduce_scatter_start %[[ALL]] into [@gp] accumulate
// CHECK-NEXT:    train.exp
// CHECK-NEXT:    dist.reduce_scatter_done %[[S]] : (!dist.token) -> ()
// CHECK-NEXT:    train.read @gp

// Tests that a sum is done before what it reads is written, and at the end of the fragment at the latest; two gathers of
// one slice do not wait for each other.
// CHECK-LABEL: dist.fragment @update
// CHECK:         %[[S:.*]] = dist.reduce_scatter_start
// CHECK-NEXT:    train.exp
// CHECK-NEXT:    dist.reduce_scatter_done %[[S]]
// CHECK-NEXT:    train.store %{{.*}} into @"p::gradient"
// CHECK-NEXT:    %[[A:.*]] = dist.all_gather_start
// CHECK-NEXT:    %[[B:.*]] = dist.all_gather_start
// CHECK-NEXT:    train.exp
// CHECK-NEXT:    dist.all_gather_done %[[A]]
// CHECK-NEXT:    dist.all_gather_done %[[B]]
// CHECK-NEXT:  }
dist.mesh @mesh ["data"] [4]
train.variable parameter @p : tensor<1024xf32> from #train.fill<0.0> {trainable}
train.variable parameter @q : tensor<1000xf32> from #train.fill<0.0> {trainable}
dist.bucket @zp on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@p] at [0]
dist.bucket @zq on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@q] at [0]
train.variable gradient @"p::gradient" of @p : tensor<1024xf32>
train.variable gradient @"q::gradient" of @q : tensor<1000xf32>
dist.bucket @gp on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <replicated> members [@"p::gradient"] at [0]
dist.bucket @gq on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <replicated> members [@"q::gradient"] at [0]
dist.fragment @forward phase forward stage 0 {
  %x = train.constant dense<1.0> : tensor<8xf32>
  %own = train.read @zp : tensor<1024xf32>
  %all = dist.all_gather %own on @mesh axis "data" : (tensor<1024xf32>) -> tensor<4096xf32>
  %0 = train.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %p = dist.view %all at 0 : tensor<4096xf32> -> tensor<1024xf32>
  dist.reduce_scatter %all into [@gp] accumulate on @mesh axis "data" : (tensor<4096xf32>) -> ()
  %1 = train.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %g = train.read @gp : tensor<1024xf32>
}
dist.fragment @update phase update pipe 0 {
  %x = train.constant dense<1.0> : tensor<1024xf32>
  %own = train.read @zp : tensor<1024xf32>
  %g = dist.read_whole @gp : tensor<4096xf32>
  dist.reduce_scatter %g into [@gq] on @mesh axis "data" : (tensor<4096xf32>) -> ()
  %0 = train.exp %x : (tensor<1024xf32>) -> tensor<1024xf32>
  train.store %0 into @"p::gradient" : tensor<1024xf32>
  %a = dist.all_gather %own on @mesh axis "data" : (tensor<1024xf32>) -> tensor<4096xf32>
  %b = dist.all_gather %own on @mesh axis "data" : (tensor<1024xf32>) -> tensor<4096xf32>
  %1 = train.exp %x : (tensor<1024xf32>) -> tensor<1024xf32>
}
