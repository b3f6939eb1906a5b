dist.mesh @mesh ["pipe", "data", "expert", "tensor"] [2, 1, 1, 1]
train.variable parameter @u : tensor<16x16xf32> from #train.fill<0.0> {trainable}
train.variable parameter @v : tensor<16x16xf32> from #train.fill<0.0> {trainable}
train.variable metric @loss : tensor<f32>
// EXAMPLE
  %g = train.loss_gradient 1.0 : tensor<f32>
  return
}
func.func @update() {
  return
}
func.func @evaluate(%x: tensor<64x16xf32>) {
  return
}
