dist.mesh @mesh ["pipe", "data", "expert", "tensor"] [1, 1, 1, 1]
train.variable parameter @w : tensor<4xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"w::gradient" of @w : tensor<4xf32>
train.variable metric @loss : tensor<f32>
// EXAMPLE
func.func @update() {
  return
}
func.func @evaluate(%x: tensor<4xf32>) {
  return
}
