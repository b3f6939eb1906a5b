// RUN: ds-opt %s --ds-insert-reductions --split-input-file | FileCheck %s --implicit-check-not=train.numerics
// RUN: ds-opt %s --ds-insert-reductions=microbatches=2 --split-input-file | FileCheck %s --check-prefix=SEVERAL

// Tests that gradients of which a rank keeps a slice are summed onto it behind the last contribution, in the order of the bucket.
// CHECK-LABEL: dist.fragment @backward
// CHECK-NOT:     train.accumulate
// CHECK:         %[[E:.*]] = train.exp
// CHECK-NEXT:    %[[P:.*]] = dist.pack %[[E]], %{{.*}} at [0, 1024] : (tensor<32x32xf32>, tensor<1000xf32>) -> tensor<4096xf32>
// CHECK-NEXT:    dist.reduce_scatter %[[P]] into [@"z::gradient"] accumulate on @mesh axis "data" {train.reference = array<i64: 6, 4>} : (tensor<4096xf32>) -> ()
// CHECK-NEXT:    train.exp
// SEVERAL: {{^}}module {
dist.mesh @mesh ["pipe", "data", "tensor"] [1, 4, 1]
train.variable parameter @a : tensor<32x32xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"a::gradient" of @a : tensor<32x32xf32>
train.variable parameter @b : tensor<1000xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"b::gradient" of @b : tensor<1000xf32>
dist.bucket @z on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <replicated> members [@a, @b] at [0, 1024]
dist.bucket @"z::gradient" on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@"a::gradient", @"b::gradient"] at [0, 1024]
dist.fragment @backward phase backward stage 0 {
  %a = train.constant dense<1.0> : tensor<32x32xf32>
  %b = train.constant dense<1.0> : tensor<1000xf32>
  train.accumulate %b into @"b::gradient" {train.reference = array<i64: 4>} : tensor<1000xf32>
  %0 = train.exp %a : (tensor<32x32xf32>) -> tensor<32x32xf32>
  train.accumulate %0 into @"a::gradient" {train.reference = array<i64: 6>} : tensor<32x32xf32>
  %1 = train.exp %0 : (tensor<32x32xf32>) -> tensor<32x32xf32>
}
dist.fragment @update phase update pipe 0 {
}

// -----

// Tests that whole gradients are reduced to their owners before the update, in place, where parameters are shared out; each rank has
// then added up its own micro-batches first, which one rank would not.
// SEVERAL: module attributes {train.numerics = #train.numerics<reassociated>} {
// CHECK-LABEL: dist.fragment @backward
// CHECK-COUNT-2: train.accumulate
// CHECK-LABEL: dist.fragment @update
// CHECK-NEXT:    %[[G:.*]] = dist.read_whole @"z::gradient" : tensor<4096xf32>
// CHECK-NEXT:    dist.reduce_scatter %[[G]] into [@"z::gradient"] on @mesh axis "data"
dist.mesh @mesh ["pipe", "data", "tensor"] [1, 4, 1]
train.variable parameter @a : tensor<32x32xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"a::gradient" of @a : tensor<32x32xf32>
train.variable parameter @b : tensor<1000xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"b::gradient" of @b : tensor<1000xf32>
dist.bucket @z on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <replicated> members [@a, @b] at [0, 1024]
dist.bucket @"z::gradient" on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <replicated> members [@"a::gradient", @"b::gradient"] at [0, 1024]
dist.fragment @backward phase backward stage 0 {
  %a = train.constant dense<1.0> : tensor<32x32xf32>
  %b = train.constant dense<1.0> : tensor<1000xf32>
  train.accumulate %b into @"b::gradient" {train.reference = array<i64: 4>} : tensor<1000xf32>
  %0 = train.exp %a : (tensor<32x32xf32>) -> tensor<32x32xf32>
  train.accumulate %0 into @"a::gradient" {train.reference = array<i64: 6>} : tensor<32x32xf32>
  %1 = train.exp %0 : (tensor<32x32xf32>) -> tensor<32x32xf32>
}
dist.fragment @update phase update pipe 0 {
}

// -----

// Tests that they are all-reduced where nothing else is shared out.
// CHECK-LABEL: dist.fragment @update
// CHECK-NEXT:    %[[G:.*]] = dist.read_whole @"z::gradient" : tensor<4096xf32>
// CHECK-NEXT:    dist.all_reduce %[[G]] into [@"z::gradient"] on @mesh axis "data"
dist.mesh @mesh ["pipe", "data", "tensor"] [1, 4, 1]
train.variable parameter @a : tensor<32x32xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"a::gradient" of @a : tensor<32x32xf32>
train.variable parameter @b : tensor<1000xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"b::gradient" of @b : tensor<1000xf32>
dist.bucket @"z::gradient" on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <replicated> members [@"a::gradient", @"b::gradient"] at [0, 1024]
dist.fragment @backward phase backward stage 0 {
  %a = train.constant dense<1.0> : tensor<32x32xf32>
  %b = train.constant dense<1.0> : tensor<1000xf32>
  train.accumulate %b into @"b::gradient" {train.reference = array<i64: 4>} : tensor<1000xf32>
  %0 = train.exp %a : (tensor<32x32xf32>) -> tensor<32x32xf32>
  train.accumulate %0 into @"a::gradient" {train.reference = array<i64: 6>} : tensor<32x32xf32>
  %1 = train.exp %0 : (tensor<32x32xf32>) -> tensor<32x32xf32>
}
dist.fragment @update phase update pipe 0 {
}

// -----

// Tests that a loss is summed by micro-batch, and that evaluation's is the mean over the ranks.
// CHECK-LABEL: dist.fragment @forward
// CHECK:         dist.all_reduce %{{.*}} into [@loss] accumulate on @mesh axis "data" : (tensor<f32>) -> ()
// CHECK-NEXT:  }
// CHECK-LABEL: dist.fragment @evaluate
// CHECK:         dist.all_reduce %{{.*}} into [@loss] accumulate
// CHECK-NEXT:    %[[SUM:.*]] = train.read @loss
// CHECK-NEXT:    %[[FOUR:.*]] = train.constant dense<4.000000e+00>
// CHECK-NEXT:    %[[MEAN:.*]] = train.div %[[SUM]], %[[FOUR]]
// CHECK-NEXT:    train.store %[[MEAN]] into @loss
dist.mesh @mesh ["pipe", "data", "tensor"] [1, 4, 1]
train.variable metric @loss : tensor<f32>
dist.fragment @forward phase forward stage 0 {
  %0 = train.constant dense<1.0> : tensor<f32>
  train.accumulate %0 into @loss : tensor<f32>
}
dist.fragment @update phase update pipe 0 {
}
dist.fragment @evaluate phase evaluate stage 0 {
  %0 = train.constant dense<1.0> : tensor<f32>
  train.accumulate %0 into @loss : tensor<f32>
}

// -----

// Tests that a role which adds nothing to a bucket of gradients sums nothing over its ranks: the other role's sum comes later.
// CHECK-LABEL: dist.fragment @"update::0"
// CHECK-NEXT:  }
// CHECK-LABEL: dist.fragment @"update::1"
// CHECK-NEXT:    dist.read_whole @"z::gradient"
// CHECK-NEXT:    dist.all_reduce
dist.mesh @mesh ["pipe", "data", "tensor"] [2, 4, 1]
train.variable parameter @a : tensor<32x32xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"a::gradient" of @a : tensor<32x32xf32>
dist.bucket @"z::gradient" on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <replicated> members [@"a::gradient"] at [0]
dist.fragment @"forward::0" phase forward stage 0 {
  %a = train.read @a : tensor<32x32xf32>
}
dist.fragment @"backward::1" phase backward stage 1 {
  %a = train.read @a : tensor<32x32xf32>
  train.accumulate %a into @"a::gradient" : tensor<32x32xf32>
}
dist.fragment @"update::0" phase update pipe 0 {
}
dist.fragment @"update::1" phase update pipe 1 {
}
dist.role @stage0 ranks [0, 3] {
  dist.program @step {
    dist.call @"forward::0" microbatch 0
    dist.call @"update::0" microbatch 0
  }
}
dist.role @stage1 ranks [4, 7] {
  dist.program @step {
    dist.call @"backward::1" microbatch 0
    dist.call @"update::1" microbatch 0
  }
}
