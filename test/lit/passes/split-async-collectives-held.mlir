// RUN: ds-opt %s --ds-split-async-collectives="max-held=8192" | FileCheck %s

// Tests that a reduction starts only when the gradients of those under way, with its own, are at most 8192 elements: the
// third waits for the first, the fourth, larger than all, for everybody. A sum of resident state holds nothing more.
// CHECK-LABEL: dist.fragment @backward
// CHECK:         %[[A:.*]] = dist.reduce_scatter_start
// CHECK-NEXT:    %[[B:.*]] = dist.reduce_scatter_start
// CHECK-NEXT:    train.exp
// CHECK-NEXT:    dist.reduce_scatter_done %[[A]]
// CHECK-NEXT:    %[[C:.*]] = dist.reduce_scatter_start
// CHECK-NEXT:    dist.reduce_scatter_done %[[B]]
// CHECK-NEXT:    dist.reduce_scatter_done %[[C]]
// CHECK-NEXT:    %[[D:.*]] = dist.reduce_scatter_start
// CHECK-NEXT:    dist.read_whole @resident
// CHECK-NEXT:    %[[E:.*]] = dist.reduce_scatter_start
// CHECK-NEXT:    train.exp
// CHECK-NEXT:    dist.reduce_scatter_done %[[D]]
// CHECK-NEXT:    dist.reduce_scatter_done %[[E]]
// CHECK-NEXT:  }
dist.mesh @mesh ["data"] [4]
train.variable gradient @p : tensor<1024xf32>
train.variable gradient @q : tensor<1024xf32>
train.variable gradient @r : tensor<1024xf32>
train.variable gradient @s : tensor<4096xf32>
train.variable gradient @t : tensor<1024xf32>
dist.bucket @a on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@p] at [0]
dist.bucket @b on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@q] at [0]
dist.bucket @c on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@r] at [0]
dist.bucket @d on @mesh axis "data" : tensor<16384xf32> slices tensor<4096xf32> sharding <sharded "data" dim 0> members [@s] at [0]
dist.bucket @resident on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <replicated> members [@t] at [0]
dist.fragment @backward phase backward stage 0 {
  %x = train.constant dense<1.0> : tensor<4096xf32>
  %y = train.constant dense<1.0> : tensor<16384xf32>
  dist.reduce_scatter %x into [@a] accumulate on @mesh axis "data" : (tensor<4096xf32>) -> ()
  dist.reduce_scatter %x into [@b] accumulate on @mesh axis "data" : (tensor<4096xf32>) -> ()
  %0 = train.exp %x : (tensor<4096xf32>) -> tensor<4096xf32>
  dist.reduce_scatter %x into [@c] accumulate on @mesh axis "data" : (tensor<4096xf32>) -> ()
  dist.reduce_scatter %y into [@d] accumulate on @mesh axis "data" : (tensor<16384xf32>) -> ()
  %g = dist.read_whole @resident : tensor<4096xf32>
  dist.reduce_scatter %g into [@resident] on @mesh axis "data" : (tensor<4096xf32>) -> ()
  %1 = train.exp %x : (tensor<4096xf32>) -> tensor<4096xf32>
}
