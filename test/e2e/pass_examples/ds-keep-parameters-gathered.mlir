dist.mesh @mesh ["data"] [2]
train.variable parameter @w : tensor<64x32xf32> from #train.fill<0.0> {trainable}
train.variable parameter @b : tensor<32xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"w::gradient" of @w : tensor<64x32xf32>
train.variable gradient @"b::gradient" of @b : tensor<32xf32>
dist.bucket @zero.0 on @mesh axis "data" : tensor<3072xf32> slices tensor<1536xf32> sharding <sharded "data" dim 0> members [@w, @b] at [0, 2048]
// EXAMPLE
dist.role @main ranks [0, 1] {
  dist.program @step {
    dist.call @forward microbatch 0
    dist.call @backward microbatch 0
  }
}
