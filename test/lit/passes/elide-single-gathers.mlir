// RUN: ds-opt %s --ds-elide-single-gathers | FileCheck %s

// Tests that a gather over one rank is its input, one into a bucket is nothing, and buckets are replicated then; a gather over the
// other axis, which has two ranks, stays.
// CHECK:       dist.bucket @b {{.*}}sharding <replicated>
// CHECK:       dist.bucket @parts {{.*}}sharding <sharded "pipe" dim 0>
// CHECK-LABEL: dist.fragment @forward
// CHECK-NEXT:    %[[OWN:.*]] = train.read @b
// CHECK-NEXT:    %[[LOW:.*]] = train.cast %[[OWN]]
// CHECK-NEXT:    dist.view %[[LOW]] at 0
// CHECK-NEXT:    %[[PART:.*]] = train.read @parts
// CHECK-NEXT:    dist.all_gather %[[PART]]
// CHECK-NEXT:  }
dist.mesh @mesh ["pipe", "data"] [2, 1]
train.variable parameter @w : tensor<64x32xf32> from #train.fill<0.0> {trainable}
train.variable parameter @u : tensor<64x32xf32> from #train.fill<0.0> {trainable}
train.variable parameter @v : tensor<64x32xf32> from #train.fill<0.0> {trainable}
dist.bucket @b on @mesh axis "data" : tensor<2048xf32> slices tensor<2048xf32> sharding <sharded "data" dim 0> members [@w] at [0]
dist.bucket @whole on @mesh axis "data" : tensor<2048xf32> slices tensor<2048xf32> sharding <replicated> members [@u] at [0]
dist.bucket @parts on @mesh axis "pipe" : tensor<2048xf32> slices tensor<1024xf32> sharding <sharded "pipe" dim 0> members [@v] at [0]
dist.fragment @forward phase forward stage 0 {
  %own = train.read @b : tensor<2048xf32>
  %low = train.cast %own to bf16 : (tensor<2048xf32>) -> tensor<2048xbf16>
  %all = dist.all_gather %low on @mesh axis "data" : (tensor<2048xbf16>) -> tensor<2048xbf16>
  %w = dist.view %all at 0 : tensor<2048xbf16> -> tensor<64x32xbf16>
  dist.all_gather %own into [@whole] on @mesh axis "data" : (tensor<2048xf32>) -> ()
  %part = train.read @parts : tensor<1024xf32>
  %both = dist.all_gather %part on @mesh axis "pipe" : (tensor<1024xf32>) -> tensor<2048xf32>
}
