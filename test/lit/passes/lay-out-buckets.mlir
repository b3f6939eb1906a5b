// RUN: ds-opt %s --ds-lay-out-buckets --split-input-file | FileCheck %s

// Tests stage 0: members from multiples of 1024 on, 2024 elements in 4 slices of half a block.
// CHECK-LABEL: module
// CHECK-NOT: dist.bucket @mine on
// CHECK: dist.bucket @"mine::gradient" on @mesh axis "data" : tensor<2048xf32> slices tensor<512xf32> sharding <replicated> members [@"a::gradient", @"b::gradient"] at [0, 1024]
// CHECK-NOT: dist.bucket @
dist.mesh @mesh ["pipe", "data", "tensor"] [1, 4, 1]
train.variable parameter @a : tensor<32x32xf32> from #train.fill<0.0> {trainable, dist.bucket = "mine", dist.zero_stage = 0}
train.variable gradient @"a::gradient" of @a : tensor<32x32xf32>
train.variable parameter @b : tensor<1000xf32> from #train.fill<0.0> {trainable, dist.bucket = "mine", dist.zero_stage = 0}
train.variable gradient @"b::gradient" of @b : tensor<1000xf32>
train.variable optimizer @"a::exp_avg" of @a : tensor<32x32xf32> from #train.fill<0.0>
train.variable optimizer @"a::exp_avg_sq" of @a : tensor<32x32xf32> from #train.fill<0.0>
train.variable optimizer @"b::exp_avg" of @b : tensor<1000xf32> from #train.fill<0.0>
train.variable optimizer @"b::exp_avg_sq" of @b : tensor<1000xf32> from #train.fill<0.0>
dist.fragment @update phase update pipe 0 {
  %rate = train.constant dense<1.0> : tensor<f64>
  %step = train.constant dense<1> : tensor<i64>
  train.adamw @a gradient @"a::gradient" moments @"a::exp_avg", @"a::exp_avg_sq" rate %rate step %step clip %rate {beta1 = 0.9, beta2 = 0.9, adam_w_mode = true, epsilon = 0.1, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  train.adamw @b gradient @"b::gradient" moments @"b::exp_avg", @"b::exp_avg_sq" rate %rate step %step clip %rate {beta1 = 0.9, beta2 = 0.9, adam_w_mode = true, epsilon = 0.1, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
}

// -----

// Tests stage 1: members from multiples of 1024 on, 2024 elements in 4 slices of half a block.
// CHECK-LABEL: module
// CHECK: dist.bucket @mine on @mesh axis "data" : tensor<2048xf32> slices tensor<512xf32> sharding <replicated> members [@a, @b] at [0, 1024]
// CHECK: dist.bucket @"mine::gradient" on @mesh axis "data" : tensor<2048xf32> slices tensor<512xf32> sharding <replicated> members [@"a::gradient", @"b::gradient"] at [0, 1024]
// CHECK: dist.bucket @"mine::exp_avg" on @mesh axis "data" : tensor<2048xf32> slices tensor<512xf32> sharding <sharded "data" dim 0> members [@"a::exp_avg", @"b::exp_avg"] at [0, 1024]
// CHECK: dist.bucket @"mine::exp_avg_sq" on @mesh axis "data" : tensor<2048xf32> slices tensor<512xf32> sharding <sharded "data" dim 0> members [@"a::exp_avg_sq", @"b::exp_avg_sq"] at [0, 1024]
dist.mesh @mesh ["pipe", "data", "tensor"] [1, 4, 1]
train.variable parameter @a : tensor<32x32xf32> from #train.fill<0.0> {trainable, dist.bucket = "mine", dist.zero_stage = 1}
train.variable gradient @"a::gradient" of @a : tensor<32x32xf32>
train.variable parameter @b : tensor<1000xf32> from #train.fill<0.0> {trainable, dist.bucket = "mine", dist.zero_stage = 1}
train.variable gradient @"b::gradient" of @b : tensor<1000xf32>
train.variable optimizer @"a::exp_avg" of @a : tensor<32x32xf32> from #train.fill<0.0>
train.variable optimizer @"a::exp_avg_sq" of @a : tensor<32x32xf32> from #train.fill<0.0>
train.variable optimizer @"b::exp_avg" of @b : tensor<1000xf32> from #train.fill<0.0>
train.variable optimizer @"b::exp_avg_sq" of @b : tensor<1000xf32> from #train.fill<0.0>
dist.fragment @update phase update pipe 0 {
  %rate = train.constant dense<1.0> : tensor<f64>
  %step = train.constant dense<1> : tensor<i64>
  train.adamw @a gradient @"a::gradient" moments @"a::exp_avg", @"a::exp_avg_sq" rate %rate step %step clip %rate {beta1 = 0.9, beta2 = 0.9, adam_w_mode = true, epsilon = 0.1, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  train.adamw @b gradient @"b::gradient" moments @"b::exp_avg", @"b::exp_avg_sq" rate %rate step %step clip %rate {beta1 = 0.9, beta2 = 0.9, adam_w_mode = true, epsilon = 0.1, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
}

// -----

// Tests stage 1 with a type that every rank works in: parameters are sharded, and so is their state; gradients are not.
// CHECK-LABEL: module
// CHECK: dist.bucket @mine on @mesh axis "data" : tensor<2048xf32> slices tensor<512xf32> sharding <sharded "data" dim 0> members [@a, @b] at [0, 1024]
// CHECK: dist.bucket @"mine::gradient" on @mesh axis "data" : tensor<2048xf32> slices tensor<512xf32> sharding <replicated> members [@"a::gradient", @"b::gradient"] at [0, 1024]
// CHECK: dist.bucket @"mine::exp_avg" on @mesh axis "data" : tensor<2048xf32> slices tensor<512xf32> sharding <sharded "data" dim 0> members [@"a::exp_avg", @"b::exp_avg"] at [0, 1024]
// CHECK: dist.bucket @"mine::exp_avg_sq" on @mesh axis "data" : tensor<2048xf32> slices tensor<512xf32> sharding <sharded "data" dim 0> members [@"a::exp_avg_sq", @"b::exp_avg_sq"] at [0, 1024]
dist.mesh @mesh ["pipe", "data", "tensor"] [1, 4, 1]
train.variable parameter @a : tensor<32x32xf32> from #train.fill<0.0> {trainable, dist.bucket = "mine", dist.working_type = bf16, dist.zero_stage = 1}
train.variable gradient @"a::gradient" of @a : tensor<32x32xf32>
train.variable parameter @b : tensor<1000xf32> from #train.fill<0.0> {trainable, dist.bucket = "mine", dist.working_type = bf16, dist.zero_stage = 1}
train.variable gradient @"b::gradient" of @b : tensor<1000xf32>
train.variable optimizer @"a::exp_avg" of @a : tensor<32x32xf32> from #train.fill<0.0>
train.variable optimizer @"a::exp_avg_sq" of @a : tensor<32x32xf32> from #train.fill<0.0>
train.variable optimizer @"b::exp_avg" of @b : tensor<1000xf32> from #train.fill<0.0>
train.variable optimizer @"b::exp_avg_sq" of @b : tensor<1000xf32> from #train.fill<0.0>
dist.fragment @update phase update pipe 0 {
  %rate = train.constant dense<1.0> : tensor<f64>
  %step = train.constant dense<1> : tensor<i64>
  train.adamw @a gradient @"a::gradient" moments @"a::exp_avg", @"a::exp_avg_sq" rate %rate step %step clip %rate {beta1 = 0.9, beta2 = 0.9, adam_w_mode = true, epsilon = 0.1, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  train.adamw @b gradient @"b::gradient" moments @"b::exp_avg", @"b::exp_avg_sq" rate %rate step %step clip %rate {beta1 = 0.9, beta2 = 0.9, adam_w_mode = true, epsilon = 0.1, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
}

// -----

// Tests stage 2: members from multiples of 1024 on, 2024 elements in 4 slices of half a block.
// CHECK-LABEL: module
// CHECK: dist.bucket @mine on @mesh axis "data" : tensor<2048xf32> slices tensor<512xf32> sharding <replicated> members [@a, @b] at [0, 1024]
// CHECK: dist.bucket @"mine::gradient" on @mesh axis "data" : tensor<2048xf32> slices tensor<512xf32> sharding <sharded "data" dim 0> members [@"a::gradient", @"b::gradient"] at [0, 1024]
// CHECK: dist.bucket @"mine::exp_avg" on @mesh axis "data" : tensor<2048xf32> slices tensor<512xf32> sharding <sharded "data" dim 0> members [@"a::exp_avg", @"b::exp_avg"] at [0, 1024]
// CHECK: dist.bucket @"mine::exp_avg_sq" on @mesh axis "data" : tensor<2048xf32> slices tensor<512xf32> sharding <sharded "data" dim 0> members [@"a::exp_avg_sq", @"b::exp_avg_sq"] at [0, 1024]
dist.mesh @mesh ["pipe", "data", "tensor"] [1, 4, 1]
train.variable parameter @a : tensor<32x32xf32> from #train.fill<0.0> {trainable, dist.bucket = "mine", dist.zero_stage = 2}
train.variable gradient @"a::gradient" of @a : tensor<32x32xf32>
train.variable parameter @b : tensor<1000xf32> from #train.fill<0.0> {trainable, dist.bucket = "mine", dist.zero_stage = 2}
train.variable gradient @"b::gradient" of @b : tensor<1000xf32>
train.variable optimizer @"a::exp_avg" of @a : tensor<32x32xf32> from #train.fill<0.0>
train.variable optimizer @"a::exp_avg_sq" of @a : tensor<32x32xf32> from #train.fill<0.0>
train.variable optimizer @"b::exp_avg" of @b : tensor<1000xf32> from #train.fill<0.0>
train.variable optimizer @"b::exp_avg_sq" of @b : tensor<1000xf32> from #train.fill<0.0>
dist.fragment @update phase update pipe 0 {
  %rate = train.constant dense<1.0> : tensor<f64>
  %step = train.constant dense<1> : tensor<i64>
  train.adamw @a gradient @"a::gradient" moments @"a::exp_avg", @"a::exp_avg_sq" rate %rate step %step clip %rate {beta1 = 0.9, beta2 = 0.9, adam_w_mode = true, epsilon = 0.1, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  train.adamw @b gradient @"b::gradient" moments @"b::exp_avg", @"b::exp_avg_sq" rate %rate step %step clip %rate {beta1 = 0.9, beta2 = 0.9, adam_w_mode = true, epsilon = 0.1, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
}

// -----

// Tests stage 3: members from multiples of 1024 on, 2024 elements in 4 slices of half a block.
// CHECK-LABEL: module
// CHECK: dist.bucket @mine on @mesh axis "data" : tensor<2048xf32> slices tensor<512xf32> sharding <sharded "data" dim 0> members [@a, @b] at [0, 1024]
// CHECK: dist.bucket @"mine::gradient" on @mesh axis "data" : tensor<2048xf32> slices tensor<512xf32> sharding <sharded "data" dim 0> members [@"a::gradient", @"b::gradient"] at [0, 1024]
// CHECK: dist.bucket @"mine::exp_avg" on @mesh axis "data" : tensor<2048xf32> slices tensor<512xf32> sharding <sharded "data" dim 0> members [@"a::exp_avg", @"b::exp_avg"] at [0, 1024]
// CHECK: dist.bucket @"mine::exp_avg_sq" on @mesh axis "data" : tensor<2048xf32> slices tensor<512xf32> sharding <sharded "data" dim 0> members [@"a::exp_avg_sq", @"b::exp_avg_sq"] at [0, 1024]
dist.mesh @mesh ["pipe", "data", "tensor"] [1, 4, 1]
train.variable parameter @a : tensor<32x32xf32> from #train.fill<0.0> {trainable, dist.bucket = "mine", dist.zero_stage = 3}
train.variable gradient @"a::gradient" of @a : tensor<32x32xf32>
train.variable parameter @b : tensor<1000xf32> from #train.fill<0.0> {trainable, dist.bucket = "mine", dist.zero_stage = 3}
train.variable gradient @"b::gradient" of @b : tensor<1000xf32>
train.variable optimizer @"a::exp_avg" of @a : tensor<32x32xf32> from #train.fill<0.0>
train.variable optimizer @"a::exp_avg_sq" of @a : tensor<32x32xf32> from #train.fill<0.0>
train.variable optimizer @"b::exp_avg" of @b : tensor<1000xf32> from #train.fill<0.0>
train.variable optimizer @"b::exp_avg_sq" of @b : tensor<1000xf32> from #train.fill<0.0>
dist.fragment @update phase update pipe 0 {
  %rate = train.constant dense<1.0> : tensor<f64>
  %step = train.constant dense<1> : tensor<i64>
  train.adamw @a gradient @"a::gradient" moments @"a::exp_avg", @"a::exp_avg_sq" rate %rate step %step clip %rate {beta1 = 0.9, beta2 = 0.9, adam_w_mode = true, epsilon = 0.1, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  train.adamw @b gradient @"b::gradient" moments @"b::exp_avg", @"b::exp_avg_sq" rate %rate step %step clip %rate {beta1 = 0.9, beta2 = 0.9, adam_w_mode = true, epsilon = 0.1, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
}
