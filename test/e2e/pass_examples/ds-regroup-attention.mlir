func.func @microbatch(%q: tensor<2x4x8x16xf32>, %k: tensor<2x4x8x16xf32>, %v: tensor<2x4x8x16xf32>, %mask: tensor<8x8xf32>) -> tensor<2x4x8x16xf32> {
  // EXAMPLE
  return %y : tensor<2x4x8x16xf32>
}
