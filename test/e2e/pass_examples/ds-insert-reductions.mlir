dist.mesh @mesh ["data"] [2]
train.variable parameter @w : tensor<64x32xf32> from #train.fill<0.0> {trainable}
train.variable parameter @b : tensor<32xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"w::gradient" of @w : tensor<64x32xf32>
train.variable gradient @"b::gradient" of @b : tensor<32xf32>
dist.bucket @zero.0 on @mesh axis "data" : tensor<3072xf32> slices tensor<1536xf32> sharding <replicated> members [@w, @b] at [0, 2048]
dist.bucket @"zero.0::gradient" on @mesh axis "data" : tensor<3072xf32> slices tensor<1536xf32> sharding <sharded "data" dim 0> members [@"w::gradient", @"b::gradient"] at [0, 2048]
dist.fragment @backward phase backward stage 0 {
  %dw = train.constant dense<1.0> : tensor<64x32xf32>
  %db = train.constant dense<1.0> : tensor<32xf32>
  // EXAMPLE
}
dist.fragment @update phase update pipe 0 {
}
