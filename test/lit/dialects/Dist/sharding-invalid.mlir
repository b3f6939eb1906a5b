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
