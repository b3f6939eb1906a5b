// RUN: ds-opt %s --ds-shard-optimizer --split-input-file | FileCheck %s

// Tests one update a bucket, a gather that makes parameters whole again, and a norm of this rank's blocks in the same order.
// CHECK-LABEL: dist.fragment @update
// CHECK:         %[[OWN:.*]] = train.read @"z::gradient" : tensor<1024xf32>
// CHECK-NEXT:    %[[SUMS:.*]] = train.block_sum_squares %[[OWN]] : (tensor<1024xf32>) -> tensor<1xf64>
// CHECK-NEXT:    %[[ALL:.*]] = dist.all_gather %[[SUMS]] on @mesh axis "data" : (tensor<1xf64>) -> tensor<4xf64>
// CHECK-NEXT:    %[[A:.*]] = dist.view %[[ALL]] at 0 : tensor<4xf64> -> tensor<1xf64>
// CHECK-NEXT:    %[[B:.*]] = dist.view %[[ALL]] at 1 : tensor<4xf64> -> tensor<1xf64>
// CHECK-NEXT:    train.global_norm %[[B]], %[[A]]
// CHECK:         train.adamw @z gradient @"z::gradient" moments @"z::exp_avg", @"z::exp_avg_sq"
// CHECK-NEXT:    %[[P:.*]] = train.read @z : tensor<1024xf32>
// CHECK-NEXT:    dist.all_gather %[[P]] into [@z] on @mesh axis "data" : (tensor<1024xf32>) -> ()
// CHECK-NOT:     train.adamw
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
  %ga = train.read @"a::gradient" : tensor<32x32xf32>
  %pa = train.block_sum_squares %ga : (tensor<32x32xf32>) -> tensor<1xf64>
  %gb = train.read @"b::gradient" : tensor<1000xf32>
  %pb = train.block_sum_squares %gb : (tensor<1000xf32>) -> tensor<1xf64>
  %norm = train.global_norm %pb, %pa : (tensor<1xf64>, tensor<1xf64>) -> tensor<f64>
  %step = train.constant dense<1> : tensor<i64>
  train.adamw @a gradient @"a::gradient" moments @"a::exp_avg", @"a::exp_avg_sq" rate %rate step %step clip %rate {beta1 = 0.9, beta2 = 0.9, adam_w_mode = true, epsilon = 0.1, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  train.adamw @b gradient @"b::gradient" moments @"b::exp_avg", @"b::exp_avg_sq" rate %rate step %step clip %rate {beta1 = 0.9, beta2 = 0.9, adam_w_mode = true, epsilon = 0.1, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
}

// -----

// Tests that parameters held as slices are not gathered.
// CHECK-LABEL: dist.fragment @update
// CHECK:         train.adamw @z
// CHECK-NOT:     dist.all_gather
dist.mesh @mesh ["pipe", "data", "tensor"] [1, 4, 1]
train.variable parameter @a : tensor<32x32xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"a::gradient" of @a : tensor<32x32xf32>
train.variable parameter @b : tensor<1000xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"b::gradient" of @b : tensor<1000xf32>
train.variable optimizer @"a::exp_avg" of @a : tensor<32x32xf32> from #train.fill<0.0>
train.variable optimizer @"a::exp_avg_sq" of @a : tensor<32x32xf32> from #train.fill<0.0>
train.variable optimizer @"b::exp_avg" of @b : tensor<1000xf32> from #train.fill<0.0>
train.variable optimizer @"b::exp_avg_sq" of @b : tensor<1000xf32> from #train.fill<0.0>
dist.bucket @z on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@a, @b] at [0, 1024]
dist.bucket @"z::gradient" on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@"a::gradient", @"b::gradient"] at [0, 1024]
dist.bucket @"z::exp_avg" on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@"a::exp_avg", @"b::exp_avg"] at [0, 1024]
dist.bucket @"z::exp_avg_sq" on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@"a::exp_avg_sq", @"b::exp_avg_sq"] at [0, 1024]
dist.fragment @update phase update pipe 0 {
  %rate = train.constant dense<1.0> : tensor<f64>
  %step = train.constant dense<1> : tensor<i64>
  train.adamw @a gradient @"a::gradient" moments @"a::exp_avg", @"a::exp_avg_sq" rate %rate step %step clip %rate {beta1 = 0.9, beta2 = 0.9, adam_w_mode = true, epsilon = 0.1, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  train.adamw @b gradient @"b::gradient" moments @"b::exp_avg", @"b::exp_avg_sq" rate %rate step %step clip %rate {beta1 = 0.9, beta2 = 0.9, adam_w_mode = true, epsilon = 0.1, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
}

// -----

// Tests that nothing changes where the optimizer's state is in no bucket.
// CHECK-LABEL: dist.fragment @update
// CHECK:         train.block_sum_squares {{.*}}32x32
// CHECK:         train.adamw @a
// CHECK:         train.adamw @b
dist.mesh @mesh ["pipe", "data", "tensor"] [1, 4, 1]
train.variable parameter @a : tensor<32x32xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"a::gradient" of @a : tensor<32x32xf32>
train.variable parameter @b : tensor<1000xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"b::gradient" of @b : tensor<1000xf32>
train.variable optimizer @"a::exp_avg" of @a : tensor<32x32xf32> from #train.fill<0.0>
train.variable optimizer @"a::exp_avg_sq" of @a : tensor<32x32xf32> from #train.fill<0.0>
train.variable optimizer @"b::exp_avg" of @b : tensor<1000xf32> from #train.fill<0.0>
train.variable optimizer @"b::exp_avg_sq" of @b : tensor<1000xf32> from #train.fill<0.0>
dist.bucket @"z::gradient" on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <replicated> members [@"a::gradient", @"b::gradient"] at [0, 1024]
dist.fragment @update phase update pipe 0 {
  %rate = train.constant dense<1.0> : tensor<f64>
  %ga = train.read @"a::gradient" : tensor<32x32xf32>
  %pa = train.block_sum_squares %ga : (tensor<32x32xf32>) -> tensor<1xf64>
  %gb = train.read @"b::gradient" : tensor<1000xf32>
  %pb = train.block_sum_squares %gb : (tensor<1000xf32>) -> tensor<1xf64>
  %norm = train.global_norm %pb, %pa : (tensor<1xf64>, tensor<1xf64>) -> tensor<f64>
  %step = train.constant dense<1> : tensor<i64>
  train.adamw @a gradient @"a::gradient" moments @"a::exp_avg", @"a::exp_avg_sq" rate %rate step %step clip %rate {beta1 = 0.9, beta2 = 0.9, adam_w_mode = true, epsilon = 0.1, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  train.adamw @b gradient @"b::gradient" moments @"b::exp_avg", @"b::exp_avg_sq" rate %rate step %step clip %rate {beta1 = 0.9, beta2 = 0.9, adam_w_mode = true, epsilon = 0.1, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
}

// -----

// Tests that a rank sums parts of blocks where its slice ends within one: a lies on all four ranks, b is whole at one.
// CHECK-LABEL: dist.fragment @update
// CHECK:         %[[OWN:.*]] = train.read @"z::gradient" : tensor<256xf32>
// CHECK-NEXT:    %[[SUMS:.*]] = train.block_sum_squares %[[OWN]] by 256 : (tensor<256xf32>) -> tensor<1xf64>
// CHECK-NEXT:    %[[ALL:.*]] = dist.all_gather %[[SUMS]] on @mesh axis "data" : (tensor<1xf64>) -> tensor<4xf64>
// CHECK-NEXT:    %[[A:.*]] = dist.view %[[ALL]] at 0 : tensor<4xf64> -> tensor<4xf64>
// CHECK:         %[[B:.*]] = train.block_sum_squares %{{.*}} : (tensor<1000xf32>) -> tensor<1xf64>
// CHECK-NEXT:    train.global_norm %[[B]], %[[A]] by [1024, 256]
dist.mesh @mesh ["pipe", "data", "tensor"] [1, 4, 1]
train.variable parameter @a : tensor<32x32xf32> from #train.fill<0.0> {trainable}
train.variable parameter @b : tensor<1000xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"a::gradient" of @a : tensor<32x32xf32>
train.variable gradient @"b::gradient" of @b : tensor<1000xf32>
train.variable optimizer @"a::momentum" : tensor<32x32xf32> from #train.fill<0.0>
dist.bucket @z on @mesh axis "data" : tensor<1024xf32> slices tensor<256xf32> sharding <replicated> members [@a] at [0]
dist.bucket @"z::gradient" on @mesh axis "data" : tensor<1024xf32> slices tensor<256xf32> sharding <sharded "data" dim 0> members [@"a::gradient"] at [0]
dist.fragment @update phase update pipe 0 {
  %ga = train.read @"a::gradient" : tensor<32x32xf32>
  %pa = train.block_sum_squares %ga : (tensor<32x32xf32>) -> tensor<1xf64>
  %gb = train.read @"b::gradient" : tensor<1000xf32>
  %pb = train.block_sum_squares %gb : (tensor<1000xf32>) -> tensor<1xf64>
  %norm = train.global_norm %pb, %pa : (tensor<1xf64>, tensor<1xf64>) -> tensor<f64>
}

// -----

// Tests that this rank's slice of the gradients is kept for the next step, whose update reads it.
// CHECK-LABEL: dist.fragment @update
// CHECK:         train.sgd @z gradient @"z::pending"
// CHECK:         %[[OWN:.*]] = train.read @"z::gradient" : tensor<1024xf32>
// CHECK-NEXT:    train.store %[[OWN]] into @"z::pending" {train.reference = array<i64: 7, 9>} : tensor<1024xf32>
// CHECK-NOT:     train.store
dist.mesh @mesh ["pipe", "data", "tensor"] [1, 4, 1]
train.variable parameter @a : tensor<32x32xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"a::gradient" of @a : tensor<32x32xf32>
train.variable parameter @b : tensor<1000xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"b::gradient" of @b : tensor<1000xf32>
train.variable optimizer @"a::pending" of @a : tensor<32x32xf32> from #train.fill<0.0>
train.variable optimizer @"b::pending" of @b : tensor<1000xf32> from #train.fill<0.0>
dist.bucket @z on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@a, @b] at [0, 1024]
dist.bucket @"z::gradient" on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@"a::gradient", @"b::gradient"] at [0, 1024]
dist.bucket @"z::pending" on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@"a::pending", @"b::pending"] at [0, 1024]
dist.fragment @update phase update pipe 0 {
  %rate = train.constant dense<1.0> : tensor<f64>
  %step = train.constant dense<1> : tensor<i64>
  train.sgd @a gradient @"a::pending" rate %rate step %step clip %rate {momentum = 0.0, weight_decay = 0.0, nesterov = false} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  train.sgd @b gradient @"b::pending" rate %rate step %step clip %rate {momentum = 0.0, weight_decay = 0.0, nesterov = false} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  %ga = train.read @"a::gradient" : tensor<32x32xf32>
  train.store %ga into @"a::pending" {train.reference = array<i64: 7>} : tensor<32x32xf32>
  %gb = train.read @"b::gradient" : tensor<1000xf32>
  train.store %gb into @"b::pending" {train.reference = array<i64: 9>} : tensor<1000xf32>
}
