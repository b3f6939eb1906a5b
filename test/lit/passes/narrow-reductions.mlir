// RUN: ds-opt %s --split-input-file --ds-narrow-reductions=type=bf16 | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-narrow-reductions=type=f16 | FileCheck %s --check-prefix=HALF

// Tests that what a micro-batch sums onto a slice is sent in 16 bits, and added where the slice is used next: not before what
// stands between. A loss is summed as it is.
// CHECK: train.numerics = #train.numerics<lossy>
// CHECK-LABEL: dist.fragment @backward
// CHECK:         %[[LOW:.*]] = train.cast %[[G:.*]] to bf16 : (tensor<4096xf32>) -> tensor<4096xbf16>
// CHECK-NEXT:    %[[SUM:.*]] = dist.reduce_scatter %[[LOW]] on @mesh axis "data" : (tensor<4096xbf16>) -> tensor<1024xbf16>
// CHECK-NEXT:    train.exp
// CHECK-NEXT:    dist.all_reduce %{{.*}} into [@loss] accumulate {{.*}} : (tensor<f32>) -> ()
// CHECK-NEXT:    %[[WIDE:.*]] = train.cast %[[SUM]] to f32 : (tensor<1024xbf16>) -> tensor<1024xf32>
// CHECK-NEXT:    train.accumulate %[[WIDE]] into @g : tensor<1024xf32>
// CHECK-NEXT:    train.read @g
// HALF: (tensor<4096xf16>) -> tensor<1024xf16>
dist.mesh @mesh ["data"] [4]
train.variable parameter @p : tensor<1024xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"p::gradient" of @p : tensor<1024xf32>
train.variable metric @loss : tensor<f32>
dist.bucket @g on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@"p::gradient"] at [0]
dist.fragment @backward phase backward stage 0 {
  %g = train.constant dense<1.0> : tensor<4096xf32>
  %loss = train.constant dense<1.0> : tensor<f32>
  dist.reduce_scatter %g into [@g] accumulate on @mesh axis "data" : (tensor<4096xf32>) -> ()
  %other = train.exp %g : (tensor<4096xf32>) -> tensor<4096xf32>
  dist.all_reduce %loss into [@loss] accumulate on @mesh axis "data" : (tensor<f32>) -> ()
  %own = train.read @g : tensor<1024xf32>
}

// -----

// Tests that a whole bucket is put back member by member, and a slice of a whole one where it lies.
// CHECK-LABEL: dist.fragment @update
// CHECK:         %[[SUMS:.*]]:2 = dist.all_reduce %{{.*}}, %{{.*}} on @mesh axis "data" : (tensor<4096xbf16>, tensor<4096xbf16>) -> (tensor<4096xbf16>, tensor<4096xbf16>)
// CHECK-NEXT:    %[[WIDE:.*]] = train.cast %[[SUMS]]#0 to f32
// CHECK-NEXT:    %[[P:.*]] = dist.view %[[WIDE]] at 0 : tensor<4096xf32> -> tensor<1000xf32>
// CHECK-NEXT:    train.store %[[P]] into @"p::gradient" : tensor<1000xf32>
// CHECK-NEXT:    %[[Q:.*]] = dist.view %[[WIDE]] at 1024 : tensor<4096xf32> -> tensor<2x2xf32>
// CHECK-NEXT:    train.store %[[Q]] into @"q::gradient" : tensor<2x2xf32>
// CHECK-NEXT:    train.cast %[[SUMS]]#1 to f32
// CHECK:         %[[SLICE:.*]] = dist.reduce_scatter {{.*}} -> tensor<1024xbf16>
// CHECK-NEXT:    %[[OWN:.*]] = train.cast %[[SLICE]] to f32
// CHECK-NEXT:    train.store %[[OWN]] into @g : tensor<1024xf32>
dist.mesh @mesh ["data"] [4]
train.variable parameter @p : tensor<1000xf32> from #train.fill<0.0> {trainable}
train.variable parameter @q : tensor<2x2xf32> from #train.fill<0.0> {trainable}
train.variable parameter @r : tensor<1000xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"p::gradient" of @p : tensor<1000xf32>
train.variable gradient @"q::gradient" of @q : tensor<2x2xf32>
train.variable gradient @"r::gradient" of @r : tensor<1000xf32>
dist.bucket @g on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <replicated> members [@"p::gradient", @"q::gradient"] at [0, 1024]
dist.bucket @h on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <replicated> members [@"r::gradient"] at [0]
dist.fragment @update phase update pipe 0 {
  %g = dist.read_whole @g : tensor<4096xf32>
  %h = dist.read_whole @h : tensor<4096xf32>
  dist.all_reduce %g, %h into [@g, @h] on @mesh axis "data" : (tensor<4096xf32>, tensor<4096xf32>) -> ()
  %again = dist.read_whole @g : tensor<4096xf32>
  dist.reduce_scatter %again into [@g] on @mesh axis "data" : (tensor<4096xf32>) -> ()
}
