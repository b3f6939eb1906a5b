func.func @forward(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
// EXAMPLE
  return %y : tensor<4x8xf32>
}
