dist.mesh @mesh ["data"] [4]
train.variable parameter @p : tensor<1024xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"p::gradient" of @p : tensor<1024xf32>
dist.bucket @"zero.0::gradient" on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@"p::gradient"] at [0]
dist.fragment @backward phase backward stage 0 {
  %g = train.constant dense<1.0> : tensor<4096xf32>
  // EXAMPLE
}
