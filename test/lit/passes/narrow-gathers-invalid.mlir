// This pass has no error of its own; here is what it must leave alone.
// RUN: ds-opt %s --ds-narrow-gathers | FileCheck %s

// Tests that a bucket is gathered as it is where one of its views is read as it is.
// CHECK-LABEL: dist.fragment @forward
// CHECK:         dist.all_gather %{{.*}} : (tensor<1024xf32>) -> tensor<4096xf32>
// CHECK:         train.cast
dist.mesh @mesh ["data"] [4]
train.variable parameter @p : tensor<1024xf32> from #train.fill<0.0> {trainable}
train.variable parameter @q : tensor<1000xf32> from #train.fill<0.0> {trainable}
dist.bucket @z on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@p, @q] at [0, 1024]
dist.fragment @forward phase forward stage 0 {
  %own = train.read @z : tensor<1024xf32>
  %all = dist.all_gather %own on @mesh axis "data" : (tensor<1024xf32>) -> tensor<4096xf32>
  %p = dist.view %all at 0 : tensor<4096xf32> -> tensor<1024xf32>
  %low = train.cast %p to bf16 : (tensor<1024xf32>) -> tensor<1024xbf16>
  %u = train.exp %low : (tensor<1024xbf16>) -> tensor<1024xbf16>
  %q = dist.view %all at 1024 : tensor<4096xf32> -> tensor<1000xf32>
  %v = train.exp %q : (tensor<1000xf32>) -> tensor<1000xf32>
}
