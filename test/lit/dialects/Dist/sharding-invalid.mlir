// RUN: ds-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{axis "data" stands twice}}
dist.value @sharding_c1 : tensor<8x4xf32> sharding <sharded "data" dim 0, partial "data">

// -----

// expected-error @+1 {{dimension -1 is negative}}
dist.value @sharding_c2 : tensor<8x4xf32> sharding <sharded "data" dim -1>

// -----

// expected-error @+1 {{expected 'partial'}}
dist.value @word : tensor<8x4xf32> sharding <split "data" dim 0>

// -----

// expected-note @+1 {{mesh declared here}}
dist.mesh @mesh ["data"] [4]
// expected-error @+1 {{op is sharded by axis "tensor", which the mesh does not have}}
dist.value @value_c3_axis : tensor<8x4xf32> sharding <sharded "tensor" dim 0>

// -----

dist.mesh @mesh ["data"] [4]
// expected-error @+1 {{op is sharded along dimension 2, and 'tensor<8x4xf32>' has none}}
dist.value @value_c3_dim : tensor<8x4xf32> sharding <sharded "data" dim 2>

// -----

dist.mesh @mesh ["data"] [4]
dist.value @x : tensor<8x4xf32>
dist.fragment @collective_c6_gathered phase forward stage 0 {
  %0 = dist.load @x : tensor<8x4xf32>
  // expected-error @+1 {{op makes something that is the same along axis "data", and says #dist.sharding<sharded "data" dim 0>}}
  %1 = dist.all_reduce %0 on @mesh axis "data" sharding <sharded "data" dim 0> : (tensor<8x4xf32>) -> tensor<8x4xf32>
}

// -----

dist.mesh @mesh ["data"] [4]
dist.value @x : tensor<8x4xf32>
dist.fragment @collective_c6_scattered phase forward stage 0 {
  %0 = dist.load @x : tensor<8x4xf32>
  // expected-error @+1 {{op makes something that is sharded by axis "data" along dimension 1, and says #dist.sharding<sharded "data" dim 0>}}
  %1 = dist.reduce_scatter %0 on @mesh axis "data" dim 1 sharding <sharded "data" dim 0> : (tensor<8x4xf32>) -> tensor<8x1xf32>
}

// -----

// expected-error @+1 {{0 runs along axis "data"; a dimension has at least one, and terms of a sum have none}}
dist.value @sharding_c2_runs : tensor<8x4xf32> sharding <sharded "data" dim 0 runs 0>

// -----

// expected-error @+1 {{op dist.sharding is a #dist.sharding of a train.variable}}
dist.mesh @sharding_c3_op ["data"] [4] {dist.sharding = #dist.sharding<replicated>}

// -----

// expected-note @+1 {{mesh declared here}}
dist.mesh @mesh ["data"] [4]
// expected-error @+1 {{op is sharded by axis "tensor", which the mesh does not have}}
train.variable parameter @sharding_c3_axis : tensor<8xf32> whole [16] from #train.fill<0.0> {dist.sharding = #dist.sharding<sharded "tensor" dim 0>}

// -----

dist.mesh @mesh ["tensor"] [2]
// expected-error @+1 {{op is partial by axis "tensor"; nothing adds up what outlives a step}}
train.variable parameter @sharding_c3_partial : tensor<8xf32> whole [16] from #train.fill<0.0> {dist.sharding = #dist.sharding<partial "tensor">}

// -----

dist.mesh @mesh ["tensor"] [2]
// expected-error @+1 {{op is sharded by axis "tensor" along dimension 1, and 'tensor<16xf32>' has none}}
train.variable parameter @sharding_c3_dim : tensor<8xf32> whole [16] from #train.fill<0.0> {dist.sharding = #dist.sharding<sharded "tensor" dim 1>}

// -----

dist.mesh @mesh ["tensor"] [2]
// expected-error @+1 {{op is sharded by axis "tensor", but 2 ranks with parts of 3 runs do not divide the 16 elements of dimension 0}}
train.variable parameter @sharding_c3_runs : tensor<8xf32> whole [16] from #train.fill<0.0> {dist.sharding = #dist.sharding<sharded "tensor" dim 0 runs 3>}

// -----

dist.mesh @mesh ["tensor"] [2]
// expected-error @+1 {{op of 'tensor<4xf32>' is sharded into pieces of [8]}}
train.variable parameter @sharding_c3_type : tensor<4xf32> whole [16] from #train.fill<0.0> {dist.sharding = #dist.sharding<sharded "tensor" dim 0>}

// -----

// expected-error @+1 {{1 steps for 2 numbers}}
module attributes {by_rank_c1 = #dist.by_rank<[0, 0], "tensor", [2]>} {}
