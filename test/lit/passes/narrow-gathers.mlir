// RUN: ds-opt %s --split-input-file --ds-narrow-gathers | FileCheck %s

// Tests that a slice is cast, and gathered in the type that all views are cast to.
// CHECK-LABEL: dist.fragment @forward
// CHECK-NEXT:    %[[OWN:.*]] = train.read @zp : tensor<1024xf32>
// CHECK-NEXT:    %[[SLICE:.*]] = train.cast %[[OWN]] to bf16
// CHECK-NEXT:    %[[ALL:.*]] = dist.all_gather %[[SLICE]] {{.*}} : (tensor<1024xbf16>) -> tensor<4096xbf16>
// CHECK-NEXT:    %[[P:.*]] = dist.view %[[ALL]] at 0 : tensor<4096xbf16> -> tensor<32x32xbf16>
// CHECK-NEXT:    train.exp %[[P]]
// CHECK-NEXT:    %[[Q:.*]] = dist.view %[[ALL]] at 1024 : tensor<4096xbf16> -> tensor<1000xbf16>
// CHECK-NEXT:    train.exp %[[Q]]
dist.mesh @mesh ["data"] [4]
train.variable parameter @p : tensor<32x32xf32> from #train.fill<0.0> {trainable}
train.variable parameter @q : tensor<1000xf32> from #train.fill<0.0> {trainable}
dist.bucket @zp on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@p, @q] at [0, 1024]
dist.fragment @forward phase forward stage 0 {
  %own = train.read @zp : tensor<1024xf32>
  %all = dist.all_gather %own on @mesh axis "data" : (tensor<1024xf32>) -> tensor<4096xf32>
  %p = dist.view %all at 0 : tensor<4096xf32> -> tensor<32x32xf32>
  %lowP = train.cast %p to bf16 : (tensor<32x32xf32>) -> tensor<32x32xbf16>
  %u = train.exp %lowP : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
  %q = dist.view %all at 1024 : tensor<4096xf32> -> tensor<1000xf32>
  %lowQ = train.cast %q to bf16 : (tensor<1000xf32>) -> tensor<1000xbf16>
  %v = train.exp %lowQ : (tensor<1000xbf16>) -> tensor<1000xbf16>
}

// -----

// Tests that of one launch a part is narrow, and that what is also read as it is, or cast to two types, stays.
// CHECK-LABEL: dist.fragment @forward
// CHECK:         dist.all_gather %{{.*}} : (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xbf16>) -> (tensor<4096xf32>, tensor<4096xf32>, tensor<4096xbf16>)
dist.mesh @mesh ["data"] [4]
train.variable parameter @p : tensor<1024xf32> from #train.fill<0.0> {trainable}
train.variable parameter @q : tensor<1024xf32> from #train.fill<0.0> {trainable}
train.variable parameter @r : tensor<1024xf32> from #train.fill<0.0> {trainable}
dist.bucket @zp on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@p] at [0]
dist.bucket @zq on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@q] at [0]
dist.bucket @zr on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@r] at [0]
dist.fragment @forward phase forward stage 0 {
  %a = train.read @zp : tensor<1024xf32>
  %b = train.read @zq : tensor<1024xf32>
  %c = train.read @zr : tensor<1024xf32>
  %all:3 = dist.all_gather %a, %b, %c on @mesh axis "data" : (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) -> (tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>)
  %p = dist.view %all#0 at 0 : tensor<4096xf32> -> tensor<1024xf32>
  %lowP = train.cast %p to bf16 : (tensor<1024xf32>) -> tensor<1024xbf16>
  %u0 = train.exp %lowP : (tensor<1024xbf16>) -> tensor<1024xbf16>
  %u1 = train.exp %p : (tensor<1024xf32>) -> tensor<1024xf32>
  %q0 = dist.view %all#1 at 0 : tensor<4096xf32> -> tensor<1024xf32>
  %lowQ = train.cast %q0 to bf16 : (tensor<1024xf32>) -> tensor<1024xbf16>
  %u2 = train.exp %lowQ : (tensor<1024xbf16>) -> tensor<1024xbf16>
  %q1 = dist.view %all#1 at 0 : tensor<4096xf32> -> tensor<1024xf32>
  %halfQ = train.cast %q1 to f16 : (tensor<1024xf32>) -> tensor<1024xf16>
  %u3 = train.exp %halfQ : (tensor<1024xf16>) -> tensor<1024xf16>
  %r = dist.view %all#2 at 0 : tensor<4096xf32> -> tensor<1024xf32>
  %lowR = train.cast %r to bf16 : (tensor<1024xf32>) -> tensor<1024xbf16>
  %u4 = train.exp %lowR : (tensor<1024xbf16>) -> tensor<1024xbf16>
}

// -----

// Tests that what is kept for other fragments is kept narrow where all of them cast it (@zp), else as it is (@zq).
// CHECK:       dist.value @"zp::whole" : tensor<4096xbf16> of @zp for_step
// CHECK:       dist.value @"zq::whole" : tensor<4096xf32> of @zq for_step
// CHECK-LABEL: dist.fragment @gather
// CHECK:         dist.store %{{.*}} as @"zp::whole" : tensor<4096xbf16>
// CHECK:         dist.store %{{.*}} as @"zq::whole" : tensor<4096xf32>
// CHECK-LABEL: dist.fragment @forward
// CHECK-NEXT:    %[[P:.*]] = dist.load @"zp::whole" : tensor<4096xbf16>
// CHECK-NEXT:    dist.view %[[P]] at 0 : tensor<4096xbf16> -> tensor<1024xbf16>
// CHECK-LABEL: dist.fragment @backward
// CHECK:         dist.load @"zq::whole" : tensor<4096xf32>
dist.mesh @mesh ["data"] [4]
train.variable parameter @p : tensor<1024xf32> from #train.fill<0.0> {trainable}
train.variable parameter @q : tensor<1024xf32> from #train.fill<0.0> {trainable}
dist.bucket @zp on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@p] at [0]
dist.bucket @zq on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@q] at [0]
dist.value @"zp::whole" : tensor<4096xf32> of @zp for_step
dist.value @"zq::whole" : tensor<4096xf32> of @zq for_step
dist.fragment @gather phase gather stage 0 {
  %a = train.read @zp : tensor<1024xf32>
  %allP = dist.all_gather %a on @mesh axis "data" : (tensor<1024xf32>) -> tensor<4096xf32>
  %b = train.read @zq : tensor<1024xf32>
  %allQ = dist.all_gather %b on @mesh axis "data" : (tensor<1024xf32>) -> tensor<4096xf32>
  dist.store %allP as @"zp::whole" : tensor<4096xf32>
  dist.store %allQ as @"zq::whole" : tensor<4096xf32>
}
dist.fragment @forward phase forward stage 0 {
  %allP = dist.load @"zp::whole" : tensor<4096xf32>
  %p = dist.view %allP at 0 : tensor<4096xf32> -> tensor<1024xf32>
  %lowP = train.cast %p to bf16 : (tensor<1024xf32>) -> tensor<1024xbf16>
  %u0 = train.exp %lowP : (tensor<1024xbf16>) -> tensor<1024xbf16>
  %allQ = dist.load @"zq::whole" : tensor<4096xf32>
  %q = dist.view %allQ at 0 : tensor<4096xf32> -> tensor<1024xf32>
  %lowQ = train.cast %q to bf16 : (tensor<1024xf32>) -> tensor<1024xbf16>
  %u1 = train.exp %lowQ : (tensor<1024xbf16>) -> tensor<1024xbf16>
}
dist.fragment @backward phase backward stage 0 {
  %allQ = dist.load @"zq::whole" : tensor<4096xf32>
  %q = dist.view %allQ at 0 : tensor<4096xf32> -> tensor<1024xf32>
  %u1 = train.exp %q : (tensor<1024xf32>) -> tensor<1024xf32>
}
