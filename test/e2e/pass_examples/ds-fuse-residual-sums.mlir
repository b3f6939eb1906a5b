func.func @forward(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>, %g: tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2xf32>) {
// EXAMPLE
  return %x, %y, %s : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2xf32>
}
