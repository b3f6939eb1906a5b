// RUN: ds-opt %s --ds-advance-reductions | FileCheck %s
// RUN: ds-opt %s --ds-advance-reductions=microbatches=2 | FileCheck %s --check-prefix=TWO

// Tests that a reduction follows the last contribution to its bucket; with several micro-batches it waits for the last.
// CHECK-LABEL: dist.fragment @backward
// CHECK:         train.accumulate %{{.*}} into @"q::gradient"
// CHECK-NEXT:    %[[Q:.*]] = dist.read_whole @gq
// CHECK-NEXT:    dist.all_reduce %[[Q]] into [@gq]
// CHECK:         train.accumulate %{{.*}} into @"p::gradient"
// CHECK-NEXT:    %[[P:.*]] = dist.read_whole @gp
// CHECK-NEXT:    dist.all_reduce %[[P]] into [@gp]
// CHECK-LABEL: dist.fragment @update
// CHECK-NEXT:  }
// TWO-LABEL: dist.fragment @backward
// TWO-NOT:     dist.all_reduce
// TWO-LABEL: dist.fragment @update
// TWO-COUNT-2: dist.all_reduce
dist.mesh @mesh ["data"] [4]
train.variable gradient @"p::gradient" : tensor<1024xf32>
train.variable gradient @"q::gradient" : tensor<1000xf32>
dist.bucket @gp on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <replicated> members [@"p::gradient"] at [0]
dist.bucket @gq on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <replicated> members [@"q::gradient"] at [0]
dist.fragment @backward phase backward stage 0 {
  %q = train.constant dense<1.0> : tensor<1000xf32>
  train.accumulate %q into @"q::gradient" : tensor<1000xf32>
  %p = train.constant dense<1.0> : tensor<1024xf32>
  train.accumulate %p into @"p::gradient" : tensor<1024xf32>
}
dist.fragment @update phase update pipe 0 {
  %g0 = dist.read_whole @gp : tensor<4096xf32>
  dist.all_reduce %g0 into [@gp] on @mesh axis "data" : (tensor<4096xf32>) -> ()
  %g1 = dist.read_whole @gq : tensor<4096xf32>
  dist.all_reduce %g1 into [@gq] on @mesh axis "data" : (tensor<4096xf32>) -> ()
}
