// RUN: ds-opt %s --split-input-file --verify-diagnostics

dist.mesh @mesh ["pipe", "data"] [1, 4]
train.variable parameter @w : tensor<32x40xf32> from #train.fill<0.0>
train.variable parameter @b : tensor<40xf32> from #train.fill<0.0>
dist.bucket @s on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@w, @b] at [0, 2048]
dist.fragment @pack_c1 phase forward stage 0 {
  %x = train.constant dense<1.0> : tensor<2x512xf32>
  %f = train.reshape %x to [1024] : (tensor<2x512xf32>) -> tensor<1024xf32>
  %i = train.constant dense<1> : tensor<1024xi64>
  // expected-error @+1 {{op lays 2 inputs at 1 offsets into 'tensor<4096xf32>'; the result must be flat and all of one element type}}
  %0 = dist.pack %x, %f at [0] : (tensor<2x512xf32>, tensor<1024xf32>) -> tensor<4096xf32>
}

// -----

dist.mesh @mesh ["pipe", "data"] [1, 4]
train.variable parameter @w : tensor<32x40xf32> from #train.fill<0.0>
train.variable parameter @b : tensor<40xf32> from #train.fill<0.0>
dist.bucket @s on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@w, @b] at [0, 2048]
dist.fragment @pack_c2 phase forward stage 0 {
  %x = train.constant dense<1.0> : tensor<2x512xf32>
  %f = train.reshape %x to [1024] : (tensor<2x512xf32>) -> tensor<1024xf32>
  %i = train.constant dense<1> : tensor<1024xi64>
  // expected-error @+1 {{op inputs at [0, 1000] overlap, or pass the end of 'tensor<4096xf32>'}}
  %0 = dist.pack %x, %f at [0, 1000] : (tensor<2x512xf32>, tensor<1024xf32>) -> tensor<4096xf32>
}
