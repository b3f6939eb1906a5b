train.variable metric @loss : tensor<f32>
func.func @microbatch(%x: tensor<3x5xf32>, %l: tensor<3xi64>) -> tensor<3x5xf32> {
// EXAMPLE
  return %dx : tensor<3x5xf32>
}
