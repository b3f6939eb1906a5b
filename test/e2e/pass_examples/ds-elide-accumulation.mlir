train.variable parameter @w : tensor<3xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"w::gradient" of @w : tensor<3xf32>
func.func @microbatch(%g: tensor<3xf32>) {
  // EXAMPLE
  return
}
