func.func @microbatch(%x: tensor<3xf32>) -> tensor<3xf32> {
  // EXAMPLE
  return %g : tensor<3xf32>
}
