func.func @forward(%x: tensor<2x4xbf16>, %w: tensor<4x8xbf16>) -> (tensor<2x8xbf16>, tensor<2x8xbf16>) {
// EXAMPLE
  return %y, %p : tensor<2x8xbf16>, tensor<2x8xbf16>
}
