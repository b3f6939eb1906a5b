// RUN: ds-opt %s --ds-lay-out-buckets --split-input-file --verify-diagnostics
// RUN: echo "" | not ds-opt --ds-lay-out-buckets 2>&1 | FileCheck %s

// CHECK: error: has no dist.mesh; ds-declare-mesh makes it

dist.mesh @mesh ["data"] [2]
// expected-error @+1 {{op must be a parameter with the name of a bucket in dist.bucket and a stage from 0 to 3 in dist.zero_stage}}
train.variable parameter @a : tensor<8xf32> from #train.fill<0.0> {trainable, dist.bucket = "mine", dist.zero_stage = 4}

// -----

dist.mesh @mesh ["data"] [2]
// expected-error @+1 {{op has no gradient, and only stage 3 shares out parameters; leave "mine" out}}
train.variable parameter @a : tensor<8xf32> from #train.fill<0.0> {dist.bucket = "mine", dist.zero_stage = 2}

// -----

dist.mesh @mesh ["data"] [2]
// expected-note @+1 {{this one}}
train.variable parameter @a : tensor<8xf32> from #train.fill<0.0> {dist.bucket = "mine", dist.zero_stage = 3}
// expected-error @+1 {{op shares bucket "mine" with a parameter of another stage or element type, or one without a gradient}}
train.variable parameter @b : tensor<8xf64> from #train.fill<0.0> {dist.bucket = "mine", dist.zero_stage = 3}
