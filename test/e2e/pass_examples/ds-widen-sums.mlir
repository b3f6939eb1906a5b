train.variable gradient @"w::gradient" : tensor<8x8xf32>
func.func @microbatch(%x: tensor<4x8xbf16>, %dy: tensor<4x8xbf16>) {
  // EXAMPLE
  return
}
