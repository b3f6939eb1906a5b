func.func @microbatch(%x: tensor<4xf32>) -> tensor<4xf32> {
  // EXAMPLE
  return %1 : tensor<4xf32>
}
