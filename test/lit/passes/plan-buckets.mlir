// RUN: ds-opt %s --ds-plan-buckets="stage=2 bucket-elements=2048" | FileCheck %s
// RUN: ds-opt %s --ds-plan-buckets="stage=3 persistence-threshold=1000" | FileCheck %s --check-prefix=THREE
// RUN: ds-opt %s --ds-plan-buckets="stage=3 persistence-threshold=1024 model-persistence-threshold=1500" | FileCheck %s --check-prefix=MODEL

// Tests that parameters share a bucket while it has room, in the order of their use (a 1024, b 1000 padded to 1024), and that a
// larger one has its own; a frozen one needs none below stage 3.
// CHECK: parameter @a {{.*}}dist.bucket = "zero.0", dist.zero_stage = 2
// CHECK: parameter @b {{.*}}dist.bucket = "zero.0", dist.zero_stage = 2
// CHECK: parameter @c {{.*}}dist.bucket = "zero.1", dist.zero_stage = 2
// CHECK-NOT: @frozen {{.*}}dist.bucket

// Tests that stage 3 keeps small parameters whole, and shares out frozen ones that are not.
// THREE: parameter @a {{.*}}dist.bucket = "zero.0", dist.zero_stage = 3
// THREE: parameter @b {{.*}}dist.bucket = "zero.1", dist.zero_stage = 2
// THREE: parameter @c {{.*}}dist.bucket = "zero.0", dist.zero_stage = 3
// THREE-NOT: @frozen {{.*}}dist.bucket

// Tests that no more stays whole than all together may: a, then no room for b.
// MODEL: parameter @a {{.*}}dist.zero_stage = 2
// MODEL: parameter @b {{.*}}dist.zero_stage = 3
// MODEL: parameter @c {{.*}}dist.zero_stage = 3
dist.mesh @mesh ["data"] [4]
train.variable parameter @a : tensor<32x32xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"a::gradient" of @a : tensor<32x32xf32>
train.variable parameter @b : tensor<1000xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"b::gradient" of @b : tensor<1000xf32>
train.variable parameter @c : tensor<64x64xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"c::gradient" of @c : tensor<64x64xf32>
train.variable parameter @frozen : tensor<8xf32> from #train.fill<0.0>
dist.fragment @backward phase backward stage 0 {
  %a = train.constant dense<1.0> : tensor<32x32xf32>
  %b = train.constant dense<1.0> : tensor<1000xf32>
  %c = train.constant dense<1.0> : tensor<64x64xf32>
  train.accumulate %c into @"c::gradient" : tensor<64x64xf32>
  train.accumulate %b into @"b::gradient" : tensor<1000xf32>
  train.accumulate %a into @"a::gradient" : tensor<32x32xf32>
}
