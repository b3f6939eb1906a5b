// RUN: ds-opt %s --ds-combine-collectives | FileCheck %s
// RUN: ds-opt %s --ds-combine-collectives=elements=8191 | FileCheck %s --check-prefix=SMALL

// Tests that neighbours become one launch, what reads the first's result behind it, and that it implements what both did.
// CHECK-LABEL: dist.fragment @update
// CHECK:         dist.all_reduce %{{.*}}, %{{.*}} into [@gp, @gq] on @mesh axis "data" {train.reference = array<i64: 3, 4>}
// CHECK:         %[[S:.*]]:2 = dist.all_gather %{{.*}}, %{{.*}} on @mesh
// CHECK-NEXT:    dist.view %[[S]]#0
// CHECK-NEXT:    dist.view %[[S]]#1
// SMALL-LABEL: dist.fragment @update
// SMALL:         dist.all_reduce %{{.*}} into [@gp] on
// SMALL:         dist.all_reduce %{{.*}} into [@gq] on

// Tests that nothing is delayed over an op that takes time, over an op on the same state, or over another kind.
// CHECK-LABEL: dist.fragment @apart
// CHECK:         dist.all_gather %{{.*}} on @mesh axis "data" : (tensor<1024xf32>) -> tensor<4096xf32>
// CHECK:         dist.all_gather %{{.*}} on @mesh axis "data" : (tensor<1024xf32>) -> tensor<4096xf32>
// CHECK:         dist.reduce_scatter %{{.*}} into [@gp] on
// CHECK:         dist.reduce_scatter %{{.*}} into [@gq] on
dist.mesh @mesh ["data"] [4]
train.variable parameter @p : tensor<1024xf32> from #train.fill<0.0> {trainable}
train.variable parameter @q : tensor<1000xf32> from #train.fill<0.0> {trainable}
dist.bucket @zp on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <replicated> members [@p] at [0]
dist.bucket @zq on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <replicated> members [@q] at [0]
train.variable gradient @"p::gradient" of @p : tensor<1024xf32>
train.variable gradient @"q::gradient" of @q : tensor<1000xf32>
dist.bucket @gp on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <replicated> members [@"p::gradient"] at [0]
dist.bucket @gq on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <replicated> members [@"q::gradient"] at [0]
dist.fragment @update phase update pipe 0 {
  %g0 = dist.read_whole @gp : tensor<4096xf32>
  dist.all_reduce %g0 into [@gp] on @mesh axis "data" {train.reference = array<i64: 3>} : (tensor<4096xf32>) -> ()
  %g1 = dist.read_whole @gq : tensor<4096xf32>
  dist.all_reduce %g1 into [@gq] on @mesh axis "data" {train.reference = array<i64: 4>} : (tensor<4096xf32>) -> ()
  %o0 = train.read @gp : tensor<1024xf32>
  %s0 = train.block_sum_squares %o0 : (tensor<1024xf32>) -> tensor<1xf64>
  %a0 = dist.all_gather %s0 on @mesh axis "data" : (tensor<1xf64>) -> tensor<4xf64>
  %v0 = dist.view %a0 at 0 : tensor<4xf64> -> tensor<1xf64>
  %o1 = train.read @gq : tensor<1024xf32>
  %s1 = train.block_sum_squares %o1 : (tensor<1024xf32>) -> tensor<1xf64>
  %a1 = dist.all_gather %s1 on @mesh axis "data" : (tensor<1xf64>) -> tensor<4xf64>
  %v1 = dist.view %a1 at 0 : tensor<4xf64> -> tensor<1xf64>
}
dist.fragment @apart phase forward stage 0 {
  %o0 = train.read @zp : tensor<1024xf32>
  %a0 = dist.all_gather %o0 on @mesh axis "data" : (tensor<1024xf32>) -> tensor<4096xf32>
  %e = train.exp %a0 : (tensor<4096xf32>) -> tensor<4096xf32>
  %a1 = dist.all_gather %o0 on @mesh axis "data" : (tensor<1024xf32>) -> tensor<4096xf32>
  dist.reduce_scatter %e into [@gp] on @mesh axis "data" : (tensor<4096xf32>) -> ()
  %s = train.read @gp : tensor<1024xf32>
  dist.reduce_scatter %a1 into [@gq] on @mesh axis "data" : (tensor<4096xf32>) -> ()
}
