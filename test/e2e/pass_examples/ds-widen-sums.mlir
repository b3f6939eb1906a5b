func.func @microbatch(%x: tensor<4x8xbf16>, %dy: tensor<4x8xbf16>) -> tensor<8x8xf32> {
  // EXAMPLE
  return %1 : tensor<8x8xf32>
}
