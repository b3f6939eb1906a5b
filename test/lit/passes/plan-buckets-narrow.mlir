// RUN: ds-opt %s --ds-plan-buckets=stage=3 | FileCheck %s
// RUN: ds-opt %s --ds-plan-buckets=stage=2 | FileCheck %s --check-prefix=TWO

// Tests that stages 1 to 3 keep parameters apart that are only used in a smaller type: @a, and @b seen in another shape.
// Below stage 3 that type stands with them: every rank works with all of it.
// CHECK: parameter @a {{.*}}dist.bucket = "zero.0"
// CHECK: parameter @b {{.*}}dist.bucket = "zero.0"
// CHECK: parameter @c {{.*}}dist.bucket = "zero.1"
// CHECK-NOT: dist.working_type
// TWO: parameter @a {{.*}}dist.bucket = "zero.0", dist.working_type = bf16, dist.zero_stage = 2
// TWO: parameter @b {{.*}}dist.bucket = "zero.0", dist.working_type = bf16, dist.zero_stage = 2
// TWO: parameter @c {{.*}}dist.bucket = "zero.1", dist.zero_stage = 2
dist.mesh @mesh ["data"] [4]
train.variable parameter @a : tensor<1024xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"a::gradient" of @a : tensor<1024xf32>
train.variable parameter @b : tensor<1024xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"b::gradient" of @b : tensor<1024xf32>
train.variable parameter @c : tensor<1024xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"c::gradient" of @c : tensor<1024xf32>
dist.fragment @forward phase forward stage 0 {
  %a = train.read @a : tensor<1024xf32>
  %lowA = train.cast %a to bf16 : (tensor<1024xf32>) -> tensor<1024xbf16>
  %u0 = train.exp %lowA : (tensor<1024xbf16>) -> tensor<1024xbf16>
  %b = train.read @b : tensor<1024xf32>
  %shaped = train.reshape %b to [32, 32] : (tensor<1024xf32>) -> tensor<32x32xf32>
  %lowB = train.cast %shaped to bf16 : (tensor<32x32xf32>) -> tensor<32x32xbf16>
  %u1 = train.exp %lowB : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
  %c = train.read @c : tensor<1024xf32>
  %lowC = train.cast %c to bf16 : (tensor<1024xf32>) -> tensor<1024xbf16>
  %u2 = train.exp %c : (tensor<1024xf32>) -> tensor<1024xf32>
}
dist.fragment @backward phase backward stage 0 {
  %g = train.constant dense<1.0> : tensor<1024xf32>
  train.accumulate %g into @"c::gradient" : tensor<1024xf32>
  train.accumulate %g into @"b::gradient" : tensor<1024xf32>
  train.accumulate %g into @"a::gradient" : tensor<1024xf32>
}
