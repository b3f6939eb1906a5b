// RUN: ds-opt %s --split-input-file --verify-diagnostics

// expected-note @below {{mesh declared here}}
dist.mesh @mesh ["pipe", "data"] [1, 4]
train.variable parameter @w : tensor<32x40xf32> from #train.fill<0.0>
train.variable parameter @b : tensor<40xf32> from #train.fill<0.0>
dist.bucket @s on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@w, @b] at [0, 2048]
dist.fragment @collective_c1 phase forward stage 0 {
  %x = train.constant dense<1.0> : tensor<2x512xf32>
  %f = train.reshape %x to [1024] : (tensor<2x512xf32>) -> tensor<1024xf32>
  %i = train.constant dense<1> : tensor<1024xi64>
  // expected-error @+1 {{op @mesh is not a dist.mesh with an axis "expert"}}
  %0 = dist.all_gather %f on @mesh axis "expert" : (tensor<1024xf32>) -> tensor<4096xf32>
}

// -----

dist.mesh @mesh ["pipe", "data"] [1, 4]
train.variable parameter @w : tensor<32x40xf32> from #train.fill<0.0>
train.variable parameter @b : tensor<40xf32> from #train.fill<0.0>
dist.bucket @s on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@w, @b] at [0, 2048]
dist.fragment @collective_c2_dim phase forward stage 0 {
  %x = train.constant dense<1.0> : tensor<2x512xf32>
  %f = train.reshape %x to [1024] : (tensor<2x512xf32>) -> tensor<1024xf32>
  %i = train.constant dense<1> : tensor<1024xi64>
  // expected-error @+1 {{op takes 'tensor<2x512xf32>', which has no dimension 2}}
  %0 = dist.all_gather %x on @mesh axis "data" dim 2 : (tensor<2x512xf32>) -> tensor<4096xf32>
}

// -----

dist.mesh @mesh ["pipe", "data"] [1, 4]
train.variable parameter @w : tensor<32x40xf32> from #train.fill<0.0>
train.variable parameter @b : tensor<40xf32> from #train.fill<0.0>
dist.bucket @s on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@w, @b] at [0, 2048]
dist.fragment @collective_c2_float phase forward stage 0 {
  %x = train.constant dense<1.0> : tensor<2x512xf32>
  %f = train.reshape %x to [1024] : (tensor<2x512xf32>) -> tensor<1024xf32>
  %i = train.constant dense<1> : tensor<1024xi64>
  // expected-error @+1 {{op sums 'tensor<1024xi64>'; only floats are summed}}
  %0 = dist.all_reduce %i on @mesh axis "data" : (tensor<1024xi64>) -> tensor<1024xi64>
}

// -----

// expected-note @below {{mesh declared here}}
dist.mesh @mesh ["pipe", "data"] [1, 4]
train.variable parameter @w : tensor<32x40xf32> from #train.fill<0.0>
train.variable parameter @b : tensor<40xf32> from #train.fill<0.0>
dist.bucket @s on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@w, @b] at [0, 2048]
dist.fragment @collective_c2_divisible phase forward stage 0 {
  %x = train.constant dense<1.0> : tensor<2x512xf32>
  %f = train.reshape %x to [1024] : (tensor<2x512xf32>) -> tensor<1024xf32>
  %i = train.constant dense<1> : tensor<1024xi64>
  %v = dist.view %f at 0 : tensor<1024xf32> -> tensor<6xf32>
  // expected-error @+1 {{op cuts dimension 0 of 'tensor<6xf32>' into 4 slices; pad it to 8}}
  %0 = dist.reduce_scatter %v on @mesh axis "data" : (tensor<6xf32>) -> tensor<1xf32>
}

// -----

dist.mesh @mesh ["pipe", "data"] [1, 4]
train.variable parameter @w : tensor<32x40xf32> from #train.fill<0.0>
train.variable parameter @b : tensor<40xf32> from #train.fill<0.0>
dist.bucket @s on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@w, @b] at [0, 2048]
dist.fragment @collective_c3 phase forward stage 0 {
  %x = train.constant dense<1.0> : tensor<2x512xf32>
  %f = train.reshape %x to [1024] : (tensor<2x512xf32>) -> tensor<1024xf32>
  %i = train.constant dense<1> : tensor<1024xi64>
  // expected-error @+1 {{op has 1 results ('tensor<2048xf32>') and must have 1 ('tensor<4096xf32>')}}
  %0 = dist.all_gather %f on @mesh axis "data" : (tensor<1024xf32>) -> tensor<2048xf32>
}

// -----

dist.mesh @mesh ["pipe", "data"] [1, 4]
// expected-note @+1 {{declared here}}
train.variable parameter @w : tensor<32x40xf32> from #train.fill<0.0>
train.variable parameter @b : tensor<40xf32> from #train.fill<0.0>
dist.bucket @s on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@w, @b] at [0, 2048]
dist.fragment @collective_c4_type phase forward stage 0 {
  %x = train.constant dense<1.0> : tensor<2x512xf32>
  %f = train.reshape %x to [1024] : (tensor<2x512xf32>) -> tensor<1024xf32>
  %i = train.constant dense<1> : tensor<1024xi64>
  // expected-error @+1 {{op @w does not take 'tensor<1024xf32>'}}
  %0 = dist.all_reduce %f into [@w] on @mesh axis "data" : (tensor<1024xf32>) -> tensor<1024xf32>
}

// -----

dist.mesh @mesh ["pipe", "data"] [1, 4]
train.variable parameter @w : tensor<32x40xf32> from #train.fill<0.0>
train.variable parameter @b : tensor<40xf32> from #train.fill<0.0>
// expected-note @+1 {{declared here}}
dist.bucket @s on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@w, @b] at [0, 2048]
dist.fragment @collective_c4_slice phase forward stage 0 {
  %x = train.constant dense<1.0> : tensor<2x512xf32>
  %f = train.reshape %x to [1024] : (tensor<2x512xf32>) -> tensor<1024xf32>
  %i = train.constant dense<1> : tensor<1024xi64>
  // expected-error @+1 {{op @s does not take 'tensor<4096xf32>'}}
  dist.all_gather %f into [@s] on @mesh axis "data" : (tensor<1024xf32>) -> ()
}

// -----

dist.mesh @mesh ["pipe", "data"] [1, 4]
train.variable parameter @w : tensor<32x40xf32> from #train.fill<0.0>
train.variable parameter @b : tensor<40xf32> from #train.fill<0.0>
dist.bucket @s on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@w, @b] at [0, 2048]
dist.fragment @collective_c4_count phase forward stage 0 {
  %x = train.constant dense<1.0> : tensor<2x512xf32>
  %f = train.reshape %x to [1024] : (tensor<2x512xf32>) -> tensor<1024xf32>
  %i = train.constant dense<1> : tensor<1024xi64>
  // expected-error @+1 {{op has 2 inputs and goes into 1}}
  dist.all_gather %f, %f into [@s] on @mesh axis "data" : (tensor<1024xf32>, tensor<1024xf32>) -> ()
}

// -----

dist.mesh @mesh ["pipe", "data"] [1, 4]
train.variable parameter @w : tensor<32x40xf32> from #train.fill<0.0>
train.variable parameter @b : tensor<40xf32> from #train.fill<0.0>
dist.bucket @s on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@w, @b] at [0, 2048]
dist.fragment @collective_c5 phase forward stage 0 {
  %x = train.constant dense<1.0> : tensor<2x512xf32>
  %f = train.reshape %x to [1024] : (tensor<2x512xf32>) -> tensor<1024xf32>
  %i = train.constant dense<1> : tensor<1024xi64>
  // expected-error @+1 {{op accumulates; only a sum into state does}}
  %0 = dist.all_reduce %f accumulate on @mesh axis "data" : (tensor<1024xf32>) -> tensor<1024xf32>
}

// -----

dist.mesh @mesh ["pipe", "data"] [1, 4]
train.variable parameter @w : tensor<32x40xf32> from #train.fill<0.0>
train.variable parameter @b : tensor<40xf32> from #train.fill<0.0>
dist.bucket @s on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@w, @b] at [0, 2048]
dist.fragment @done_c1 phase forward stage 0 {
  %x = train.constant dense<1.0> : tensor<2x512xf32>
  %f = train.reshape %x to [1024] : (tensor<2x512xf32>) -> tensor<1024xf32>
  %i = train.constant dense<1> : tensor<1024xi64>
  // expected-note @below {{its token comes from here}}
  %0 = dist.all_reduce_start %f on @mesh axis "data" : (tensor<1024xf32>) -> !dist.token
  // expected-error @+1 {{op needs the token of one dist.broadcast_start of the same fragment, and must be its only done}}
  %1 = dist.broadcast_done %0 : (!dist.token) -> tensor<1024xf32>
}

// -----

dist.mesh @mesh ["pipe", "data"] [1, 4]
train.variable parameter @w : tensor<32x40xf32> from #train.fill<0.0>
train.variable parameter @b : tensor<40xf32> from #train.fill<0.0>
dist.bucket @s on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@w, @b] at [0, 2048]
dist.fragment @done_c2 phase forward stage 0 {
  %x = train.constant dense<1.0> : tensor<2x512xf32>
  %f = train.reshape %x to [1024] : (tensor<2x512xf32>) -> tensor<1024xf32>
  %i = train.constant dense<1> : tensor<1024xi64>
  // expected-note @below {{begun here}}
  %0 = dist.all_gather_start %f on @mesh axis "data" : (tensor<1024xf32>) -> !dist.token
  // expected-error @+1 {{op has 1 results ('tensor<1024xf32>') and must have 1 ('tensor<4096xf32>')}}
  %1 = dist.all_gather_done %0 : (!dist.token) -> tensor<1024xf32>
}

// -----

dist.mesh @mesh ["data"] [4]
dist.fragment @collective_c2_no_dim phase forward stage 0 {
  %x = train.constant dense<1.0> : tensor<2x512xf32>
  // expected-error @+1 {{op has dim 1, and cuts and joins nothing}}
  %0 = dist.all_reduce %x on @mesh axis "data" dim 1 : (tensor<2x512xf32>) -> tensor<2x512xf32>
}

// -----

// expected-note @below {{mesh declared here}}
dist.mesh @mesh ["data"] [4]
dist.fragment @collective_c2_all_to_all phase forward stage 0 {
  %x = train.constant dense<1.0> : tensor<2x512xf32>
  // expected-error @+1 {{op cuts dimension 0 of 'tensor<2x512xf32>' into 4 slices; pad it to 4}}
  %0 = dist.all_to_all %x on @mesh axis "data" : (tensor<2x512xf32>) -> tensor<2x512xf32>
}

// -----

dist.mesh @mesh ["data"] [4]
dist.fragment @collective_c3_dim phase forward stage 0 {
  %x = train.constant dense<1.0> : tensor<2x512xf32>
  // expected-error @+1 {{op has 1 results ('tensor<8x512xf32>') and must have 1 ('tensor<2x2048xf32>')}}
  %0 = dist.all_gather %x on @mesh axis "data" dim 1 : (tensor<2x512xf32>) -> tensor<8x512xf32>
}
