func.func @microbatch(%q: tensor<2x4xf32>, %kv: tensor<2x8xf32>) -> tensor<2x12xf32> {
  // EXAMPLE
  return %g : tensor<2x12xf32>
}
