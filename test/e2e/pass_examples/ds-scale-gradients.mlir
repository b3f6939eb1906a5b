func.func @microbatch() -> tensor<f32> {
  // EXAMPLE
  return %g : tensor<f32>
}
