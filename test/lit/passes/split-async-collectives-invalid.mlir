// RUN: ds-opt %s --ds-split-async-collectives | FileCheck %s
// No input is wrong for this pass; what is split already stays.

// CHECK-LABEL: dist.fragment @forward
// CHECK:         dist.all_gather_start
// CHECK-NEXT:    dist.all_gather_done
// CHECK-NEXT:  }
dist.mesh @mesh ["data"] [4]
train.variable parameter @p : tensor<1024xf32> from #train.fill<0.0> {trainable}
train.variable parameter @q : tensor<1000xf32> from #train.fill<0.0> {trainable}
dist.bucket @zp on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@p] at [0]
dist.bucket @zq on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@q] at [0]
dist.fragment @forward phase forward stage 0 {
  %own = train.read @zp : tensor<1024xf32>
  %t = dist.all_gather_start %own on @mesh axis "data" : (tensor<1024xf32>) -> !dist.token
  %all = dist.all_gather_done %t : (!dist.token) -> tensor<4096xf32>
}
