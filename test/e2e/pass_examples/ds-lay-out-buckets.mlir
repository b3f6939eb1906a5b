dist.mesh @mesh ["data"] [2]
// EXAMPLE
train.variable gradient @"w::gradient" of @w : tensor<64x32xf32>
train.variable gradient @"b::gradient" of @b : tensor<32xf32>
dist.fragment @update phase update pipe 0 {
  %rate = train.constant dense<1.0> : tensor<f64>
  %step = train.constant dense<1> : tensor<i64>
  train.sgd @w gradient @"w::gradient" rate %rate step %step clip %rate {momentum = 0.0, nesterov = false, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  train.sgd @b gradient @"b::gradient" rate %rate step %step clip %rate {momentum = 0.0, nesterov = false, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
}
