// RUN: ds-opt %s | ds-opt | FileCheck %s

dist.mesh @mesh ["pipe", "data"] [1, 4]
train.variable parameter @w : tensor<32x40xf32> from #train.fill<0.0>
train.variable parameter @b : tensor<40xf32> from #train.fill<0.0>

// Tests both ways of holding a bucket, and that its members may be read where they lie.
// CHECK: dist.bucket @whole on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <replicated> members [@w, @b] at [0, 2048]
dist.bucket @whole on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <replicated> members [@w, @b] at [0, 2048]
// CHECK: dist.bucket @slice on @mesh axis "pipe" : tensor<2048xf32> slices tensor<2048xf32> sharding <sharded "pipe" dim 0> members [@w] at [0]
dist.bucket @slice on @mesh axis "pipe" : tensor<2048xf32> slices tensor<2048xf32> sharding <sharded "pipe" dim 0> members [@w] at [0]
// CHECK: dist.value @gathered : tensor<4096xf32> of @whole for_step
dist.value @gathered : tensor<4096xf32> of @whole for_step

// Tests that ops over state see this rank's slice of a bucket.
// CHECK-LABEL: dist.fragment @reads
dist.fragment @reads phase forward stage 0 {
  // CHECK: train.read @whole : tensor<1024xf32>
  %0 = train.read @whole : tensor<1024xf32>
  // CHECK: dist.read_whole @whole : tensor<4096xf32>
  %1 = dist.read_whole @whole : tensor<4096xf32>
}
