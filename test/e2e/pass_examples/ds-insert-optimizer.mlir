train.variable metric @loss : tensor<f32>
// EXAMPLE
func.func @microbatch() {
  return
}
