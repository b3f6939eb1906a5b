// A linear layer with a loss on the labels.
train.variable parameter @w : tensor<4x2xf32> from #train.fill<0.0> {trainable}
train.variable parameter @b : tensor<2xf32> from #train.fill<0.0> {trainable}
func.func @forward(%x: tensor<3x4xf32> {train.input = "x"}, %labels: tensor<3xi64> {train.input = "labels"}) -> tensor<f32> {
  %w = train.read @w : tensor<4x2xf32>
  %b = train.read @b : tensor<2xf32>
  %0 = train.matmul %x, %w : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32> loc("fc")
  %1 = train.add %0, %b : (tensor<3x2xf32>, tensor<2xf32>) -> tensor<3x2xf32> loc("logits")
  %loss, %lse = train.cross_entropy mean %1, %labels ignore -100 : (tensor<3x2xf32>, tensor<3xi64>) -> (tensor<f32>, tensor<3xf32>) loc("loss")
  return %loss : tensor<f32>
}
