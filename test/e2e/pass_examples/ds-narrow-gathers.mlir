dist.mesh @mesh ["data"] [4]
train.variable parameter @p : tensor<32x64xf32> from #train.fill<0.0> {trainable}
dist.bucket @zero.0 on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@p] at [0]
dist.fragment @forward phase forward stage 0 {
  // EXAMPLE
}
