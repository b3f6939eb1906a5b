// RUN: ds-opt %s --split-input-file --verify-diagnostics

// expected-note @below {{mesh declared here}}
dist.mesh @mesh ["pipe", "data"] [1, 4]
train.variable parameter @w : tensor<32x40xf32> from #train.fill<0.0>
train.variable parameter @b : tensor<40xf32> from #train.fill<0.0>
// expected-error @+1 {{op @mesh is not a dist.mesh with an axis "tensor"}}
dist.bucket @bucket_c1_axis on @mesh axis "tensor" : tensor<4096xf32> slices tensor<1024xf32> sharding <replicated> members [@w] at [0]

// -----

// expected-note @below {{mesh declared here}}
dist.mesh @mesh ["pipe", "data"] [1, 4]
train.variable parameter @w : tensor<32x40xf32> from #train.fill<0.0>
train.variable parameter @b : tensor<40xf32> from #train.fill<0.0>
// expected-error @+1 {{op 'tensor<4096xf32>' is not 4 slices of 'tensor<2048xf32>'}}
dist.bucket @bucket_c1_slices on @mesh axis "data" : tensor<4096xf32> slices tensor<2048xf32> sharding <replicated> members [@w] at [0]

// -----

dist.mesh @mesh ["pipe", "data"] [1, 4]
train.variable parameter @w : tensor<32x40xf32> from #train.fill<0.0>
train.variable parameter @b : tensor<40xf32> from #train.fill<0.0>
// expected-error @+1 {{op has 1 members and 2 offsets}}
dist.bucket @bucket_c2_count on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <replicated> members [@w] at [0, 2048]

// -----

dist.mesh @mesh ["pipe", "data"] [1, 4]
// expected-note @below {{declared here}}
train.variable parameter @w : tensor<32x40xf32> from #train.fill<0.0>
train.variable parameter @b : tensor<40xf32> from #train.fill<0.0>
// expected-error @+1 {{op member @w is not a variable of 'f64'}}
dist.bucket @bucket_c2_type on @mesh axis "data" : tensor<4096xf64> slices tensor<1024xf64> sharding <replicated> members [@w] at [0]

// -----

dist.mesh @mesh ["pipe", "data"] [1, 4]
train.variable parameter @w : tensor<32x40xf32> from #train.fill<0.0>
train.variable parameter @b : tensor<40xf32> from #train.fill<0.0>
// expected-error @+1 {{op members at [0, 1024] overlap, or pass the end of 'tensor<4096xf32>'}}
dist.bucket @bucket_c2_overlap on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <replicated> members [@w, @b] at [0, 1024]

// -----

dist.mesh @mesh ["pipe", "data"] [1, 4]
train.variable parameter @w : tensor<32x40xf32> from #train.fill<0.0>
train.variable parameter @b : tensor<40xf32> from #train.fill<0.0>
// expected-error @+1 {{op slices of 1024 elements must be multiples of 64, and offsets [0, 1280] of 1024}}
dist.bucket @bucket_c3 on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <replicated> members [@w, @b] at [0, 1280]

// -----

dist.mesh @mesh ["pipe", "data"] [1, 4]
train.variable parameter @w : tensor<32x40xf32> from #train.fill<0.0>
train.variable parameter @b : tensor<40xf32> from #train.fill<0.0>
// expected-error @+1 {{op is not the whole of a dist.bucket}}
dist.value @value_c2 : tensor<4096xf32> of @w for_step

// -----

dist.mesh @mesh ["data"] [4]
train.variable parameter @w : tensor<64xf32> from #train.fill<0.0> {trainable}
// expected-error @+1 {{op slices of 32 elements must be multiples of 64, and offsets [0] of 1024}}
dist.bucket @bucket_c3_slice on @mesh axis "data" : tensor<128xf32> slices tensor<32xf32> sharding <replicated> members [@w] at [0]

// -----

dist.mesh @mesh ["data", "tensor"] [4, 1]
train.variable parameter @w : tensor<64xf32> from #train.fill<0.0> {trainable}
// expected-error @+1 {{op has sharding #dist.sharding<sharded "tensor" dim 0>; it must be replicated, or sharded by axis "data" alone, along dimension 0}}
dist.bucket @bucket_c4 on @mesh axis "data" : tensor<256xf32> slices tensor<64xf32> sharding <sharded "tensor" dim 0> members [@w] at [0]
