// RUN: sed s/RANKS/1024/ %s | ds-opt - --ds-plan-buckets="stage=3 persistence-threshold=100000" | FileCheck %s --check-prefix=WHOLE
// RUN: sed s/RANKS/16384/ %s | ds-opt - --ds-plan-buckets="stage=3 persistence-threshold=100000" | FileCheck %s --check-prefix=SHARED

// Tests that 100000 elements stay whole on 1024 ranks, whose slices of 128 elements are 31072 of padding, and not on 16384 ranks:
// the smallest slice, of 64 elements, would make them 1048576. They have a bucket of their own still.
// WHOLE:  parameter @large {{.*}}dist.zero_stage = 3
// WHOLE:  parameter @small {{.*}}dist.zero_stage = 2
// SHARED: parameter @large {{.*}}dist.bucket = "zero.0", dist.zero_stage = 3
// SHARED: parameter @small {{.*}}dist.bucket = "zero.1", dist.zero_stage = 3
dist.mesh @mesh ["pipe", "data", "tensor"] [1, RANKS, 1]
train.variable parameter @large : tensor<1000000x2000xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"large::gradient" of @large : tensor<1000000x2000xf32>
train.variable parameter @small : tensor<100000xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"small::gradient" of @small : tensor<100000xf32>
