func.func @microbatch(%x: tensor<4xf32>) {
  // EXAMPLE
  return
}
