// RUN: ds-opt %s --ds-verify-overlapped-form | FileCheck %s

// Tests that work on other state may run beside a collective, and reads of what it reads.
// CHECK-LABEL: dist.fragment @update
dist.mesh @mesh ["data"] [4]
train.variable parameter @p : tensor<1024xf32> from #train.fill<0.0> {trainable}
train.variable parameter @q : tensor<1024xf32> from #train.fill<0.0> {trainable}
dist.bucket @zp on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@p] at [0]
dist.fragment @update phase update pipe 0 {
  %own = train.read @zp : tensor<1024xf32>
  %t = dist.all_gather_start %own on @mesh axis "data" : (tensor<1024xf32>) -> !dist.token
  %again = train.read @zp : tensor<1024xf32>
  train.store %again into @q : tensor<1024xf32>
  %all = dist.all_gather_done %t : (!dist.token) -> tensor<4096xf32>
}
