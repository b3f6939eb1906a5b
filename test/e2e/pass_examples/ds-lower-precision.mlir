train.variable parameter @w : tensor<8x8xf32> from #train.fill<0.0> {trainable}
func.func @microbatch(%x: tensor<4x8xf32>) {
  // EXAMPLE
  return
}
