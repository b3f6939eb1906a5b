dist.mesh @mesh ["data"] [4]
train.variable parameter @p : tensor<1024xf32> from #train.fill<0.0> {trainable}
train.variable parameter @q : tensor<1024xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"p::gradient" of @p : tensor<1024xf32>
train.variable gradient @"q::gradient" of @q : tensor<1024xf32>
dist.bucket @zero.0 on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@p] at [0]
dist.bucket @zero.1 on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@q] at [0]
dist.fragment @forward phase forward stage 0 {
  %x = train.constant dense<1.0> : tensor<8xf32>
  // EXAMPLE
}
