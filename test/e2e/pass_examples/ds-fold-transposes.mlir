func.func @microbatch(%x: tensor<2x8xf32>, %w: tensor<4x8xf32>) -> tensor<2x4xf32> {
  // EXAMPLE
  return %y : tensor<2x4xf32>
}
