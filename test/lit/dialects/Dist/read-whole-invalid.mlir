// RUN: ds-opt %s --split-input-file --verify-diagnostics

dist.mesh @mesh ["pipe", "data"] [1, 4]
train.variable parameter @w : tensor<32x40xf32> from #train.fill<0.0>
train.variable parameter @b : tensor<40xf32> from #train.fill<0.0>
// expected-note @below {{declared here}}
dist.bucket @s on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@w, @b] at [0, 2048]
dist.fragment @read_whole_c1 phase forward stage 0 {
  %x = train.constant dense<1.0> : tensor<2x512xf32>
  %f = train.reshape %x to [1024] : (tensor<2x512xf32>) -> tensor<1024xf32>
  %i = train.constant dense<1> : tensor<1024xi64>
  // expected-error @+1 {{op @s is not a replicated dist.bucket of 'tensor<4096xf32>'}}
  %0 = dist.read_whole @s : tensor<4096xf32>
}
