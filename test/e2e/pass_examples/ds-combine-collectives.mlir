dist.mesh @mesh ["data"] [4]
train.variable parameter @p : tensor<1024xf32> from #train.fill<0.0> {trainable}
train.variable parameter @q : tensor<1024xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"p::gradient" of @p : tensor<1024xf32>
train.variable gradient @"q::gradient" of @q : tensor<1024xf32>
dist.bucket @"zero.0::gradient" on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <replicated> members [@"p::gradient"] at [0]
dist.bucket @"zero.1::gradient" on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <replicated> members [@"q::gradient"] at [0]
dist.fragment @update phase update pipe 0 {
  %a = dist.read_whole @"zero.0::gradient" : tensor<4096xf32>
  %b = dist.read_whole @"zero.1::gradient" : tensor<4096xf32>
  // EXAMPLE
}
