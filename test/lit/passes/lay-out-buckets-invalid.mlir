// RUN: ds-opt %s --ds-lay-out-buckets --split-input-file --verify-diagnostics
// RUN: echo "" | not ds-opt --ds-lay-out-buckets 2>&1 | FileCheck %s

// CHECK: error: has no dist.mesh; ds-declare-mesh makes it

dist.mesh @mesh ["data"] [2]
// expected-error @+1 {{op must be a parameter with the name of a bucket in dist.bucket and a stage from 0 to 3 in dist.zero_stage}}
train.variable parameter @a : tensor<8xf32> from #train.fill<0.0> {trainable, dist.bucket = "mine", dist.zero_stage = 4}

// -----

dist.mesh @mesh ["data"] [2]
// expected-error @+1 {{op has no gradient, and only stage 3 and a dist.working_type share out parameters; leave "mine" out}}
train.variable parameter @a : tensor<8xf32> from #train.fill<0.0> {dist.bucket = "mine", dist.zero_stage = 2}

// -----

dist.mesh @mesh ["data"] [2]
// expected-note @+1 {{this one}}
train.variable parameter @a : tensor<8xf32> from #train.fill<0.0> {dist.bucket = "mine", dist.zero_stage = 3}
// expected-error @+1 {{op shares bucket "mine" with a parameter of another stage, element or working type, or one without a gradient}}
train.variable parameter @b : tensor<8xf64> from #train.fill<0.0> {dist.bucket = "mine", dist.zero_stage = 3}

// -----

dist.mesh @mesh ["pipe", "data", "tensor"] [1, 4, 1]
// expected-error @+1 {{op dist.working_type is 'bf16'; it is a float of 16 bits, of a parameter under stage 1 or 2}}
train.variable parameter @a : tensor<8xf32> from #train.fill<0.0> {trainable, dist.bucket = "mine", dist.working_type = bf16, dist.zero_stage = 3}
