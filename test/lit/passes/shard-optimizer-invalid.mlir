// RUN: ds-opt %s --ds-shard-optimizer --split-input-file --verify-diagnostics
// RUN: echo "" | not ds-opt --ds-shard-optimizer 2>&1 | FileCheck %s

// CHECK: error: has no fragment of phase update; ds-outline-fragments makes it

dist.mesh @mesh ["pipe", "data", "tensor"] [1, 4, 1]
train.variable parameter @a : tensor<32x32xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"a::gradient" of @a : tensor<32x32xf32>
train.variable parameter @b : tensor<1000xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"b::gradient" of @b : tensor<1000xf32>
// expected-note @below {{declared here}}
train.variable optimizer @"a::exp_avg" of @a : tensor<32x32xf32> from #train.fill<0.0>
train.variable optimizer @"a::exp_avg_sq" of @a : tensor<32x32xf32> from #train.fill<0.0>
train.variable optimizer @"b::exp_avg" of @b : tensor<1000xf32> from #train.fill<0.0>
train.variable optimizer @"b::exp_avg_sq" of @b : tensor<1000xf32> from #train.fill<0.0>
dist.bucket @z on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <replicated> members [@a, @b] at [0, 1024]
dist.fragment @update phase update pipe 0 {
  %rate = train.constant dense<1.0> : tensor<f64>
  %step = train.constant dense<1> : tensor<i64>
  // expected-error @+1 {{op @"a::exp_avg" lies in no bucket; ds-lay-out-buckets makes one}}
  train.adamw @a gradient @"a::gradient" moments @"a::exp_avg", @"a::exp_avg_sq" rate %rate step %step clip %rate {beta1 = 0.9, beta2 = 0.9, adam_w_mode = true, epsilon = 0.1, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  train.adamw @b gradient @"b::gradient" moments @"b::exp_avg", @"b::exp_avg_sq" rate %rate step %step clip %rate {beta1 = 0.9, beta2 = 0.9, adam_w_mode = true, epsilon = 0.1, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
}

// -----

dist.mesh @mesh ["pipe", "data", "tensor"] [1, 4, 1]
train.variable parameter @a : tensor<32x32xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"a::gradient" of @a : tensor<32x32xf32>
train.variable parameter @b : tensor<1000xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"b::gradient" of @b : tensor<1000xf32>
train.variable optimizer @"a::exp_avg" of @a : tensor<32x32xf32> from #train.fill<0.0>
train.variable optimizer @"a::exp_avg_sq" of @a : tensor<32x32xf32> from #train.fill<0.0>
train.variable optimizer @"b::exp_avg" of @b : tensor<1000xf32> from #train.fill<0.0>
train.variable optimizer @"b::exp_avg_sq" of @b : tensor<1000xf32> from #train.fill<0.0>
dist.bucket @z on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <replicated> members [@a, @b] at [0, 1024]
dist.bucket @"z::gradient" on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@"a::gradient", @"b::gradient"] at [0, 1024]
dist.bucket @"z::exp_avg" on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@"a::exp_avg", @"b::exp_avg"] at [0, 1024]
dist.bucket @"z::exp_avg_sq" on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@"a::exp_avg_sq", @"b::exp_avg_sq"] at [0, 1024]
dist.fragment @update phase update pipe 0 {
  %rate = train.constant dense<1.0> : tensor<f64>
  %step = train.constant dense<1> : tensor<i64>
  // expected-note @+1 {{the other}}
  train.adamw @a gradient @"a::gradient" moments @"a::exp_avg", @"a::exp_avg_sq" rate %rate step %step clip %rate {beta1 = 0.9, beta2 = 0.9, adam_w_mode = true, epsilon = 0.1, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  // expected-error @+1 {{op updates its parameter otherwise than another of bucket @z is updated}}
  train.adamw @b gradient @"b::gradient" moments @"b::exp_avg", @"b::exp_avg_sq" rate %rate step %step clip %rate {beta1 = 0.9, beta2 = 0.9, adam_w_mode = true, epsilon = 0.1, weight_decay = 0.5} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
}

// -----

// A trust ratio is of a whole parameter; here it would be of a slice.
dist.mesh @mesh ["pipe", "data", "tensor"] [1, 4, 1]
train.variable parameter @a : tensor<32x32xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"a::gradient" of @a : tensor<32x32xf32>
train.variable optimizer @"a::exp_avg" of @a : tensor<32x32xf32> from #train.fill<0.0>
train.variable optimizer @"a::exp_avg_sq" of @a : tensor<32x32xf32> from #train.fill<0.0>
dist.bucket @z on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <replicated> members [@a] at [0]
dist.bucket @"z::gradient" on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@"a::gradient"] at [0]
dist.bucket @"z::exp_avg" on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@"a::exp_avg"] at [0]
dist.bucket @"z::exp_avg_sq" on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@"a::exp_avg_sq"] at [0]
dist.fragment @update phase update pipe 0 {
  %rate = train.constant dense<1.0> : tensor<f64>
  %step = train.constant dense<1> : tensor<i64>
  // expected-error @+1 {{op needs the norm of a whole parameter, and ranks update slices of bucket @z; ZeRO stage 0 leaves parameters whole}}
  train.lamb @a gradient @"a::gradient" moments @"a::exp_avg", @"a::exp_avg_sq" rate %rate step %step clip %rate {beta1 = 0.9, beta2 = 0.9, bias_correction = true, epsilon = 0.1, max_coeff = 10.0, min_coeff = 0.0, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
}
