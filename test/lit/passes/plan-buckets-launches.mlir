// RUN: ds-opt %s --ds-plan-buckets=for-launches | FileCheck %s

// Tests buckets for fewer launches: what is only used in 16 bits is of stage 3, the rest of stage 1; what needs padding lies apart, and
// a gradient that is stored once counts as one that is added to. Frozen parameters lie in none.
// CHECK: parameter @a {{.*}}dist.bucket = "zero.0", dist.zero_stage = 3
// CHECK: parameter @b {{.*}}dist.bucket = "zero.1", dist.zero_stage = 3
// CHECK: parameter @c {{.*}}dist.bucket = "zero.2", dist.zero_stage = 1
// CHECK: parameter @d {{.*}}dist.bucket = "zero.0", dist.zero_stage = 3
// CHECK-NOT: @frozen {{.*}}dist.bucket
dist.mesh @mesh ["data"] [1]
train.variable parameter @a : tensor<32x32xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"a::gradient" of @a : tensor<32x32xf32>
train.variable parameter @b : tensor<1000xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"b::gradient" of @b : tensor<1000xf32>
train.variable parameter @c : tensor<64x64xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"c::gradient" of @c : tensor<64x64xf32>
train.variable parameter @d : tensor<32x32xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"d::gradient" of @d : tensor<32x32xf32>
train.variable parameter @frozen : tensor<8xf32> from #train.fill<0.0>
dist.fragment @forward phase forward stage 0 {
  %a = train.read @a : tensor<32x32xf32>
  %b = train.read @b : tensor<1000xf32>
  %c = train.read @c : tensor<64x64xf32>
  %d = train.read @d : tensor<32x32xf32>
  %la = train.cast %a to bf16 : (tensor<32x32xf32>) -> tensor<32x32xbf16>
  %lb = train.cast %b to bf16 : (tensor<1000xf32>) -> tensor<1000xbf16>
  %lc = train.cast %c to bf16 : (tensor<64x64xf32>) -> tensor<64x64xbf16>
  %ec = train.exp %c : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %ld = train.cast %d to bf16 : (tensor<32x32xf32>) -> tensor<32x32xbf16>
}
dist.fragment @backward phase backward stage 0 {
  %a = train.constant dense<1.0> : tensor<32x32xf32>
  %b = train.constant dense<1.0> : tensor<1000xf32>
  %c = train.constant dense<1.0> : tensor<64x64xf32>
  train.store %a into @"d::gradient" : tensor<32x32xf32>
  train.store %c into @"c::gradient" : tensor<64x64xf32>
  train.store %b into @"b::gradient" : tensor<1000xf32>
  train.store %a into @"a::gradient" : tensor<32x32xf32>
}
