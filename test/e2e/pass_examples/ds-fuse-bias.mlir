func.func @microbatch(%x: tensor<2x8xf32>, %w: tensor<8x4xf32>, %b: tensor<4xf32>) -> tensor<2x4xf32> {
  // EXAMPLE
  return %y : tensor<2x4xf32>
}
