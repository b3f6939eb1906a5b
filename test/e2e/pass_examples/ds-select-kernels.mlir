train.variable parameter @w : tensor<4xf32> from #train.fill<0.0> {trainable}
train.variable gradient @g of @w : tensor<4xf32>
dist.value @x : tensor<4xf32>
dist.fragment @backward phase backward stage 0 {
  %x = dist.load @x : tensor<4xf32>
  // EXAMPLE
}
