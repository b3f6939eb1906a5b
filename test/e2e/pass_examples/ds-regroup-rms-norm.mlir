func.func @microbatch(%x: tensor<4x64x8xf32>, %scale: tensor<8xf32>) -> tensor<4x64x8xf32> {
  // EXAMPLE
  return %y : tensor<4x64x8xf32>
}
