dist.mesh @mesh ["data"] [2]
// EXAMPLE
train.variable gradient @"w::gradient" of @w : tensor<64x32xf32>
train.variable gradient @"b::gradient" of @b : tensor<32xf32>
dist.fragment @backward phase backward stage 0 {
  %w = train.constant dense<1.0> : tensor<64x32xf32>
  %b = train.constant dense<1.0> : tensor<32xf32>
  train.accumulate %b into @"b::gradient" : tensor<32xf32>
  train.accumulate %w into @"w::gradient" : tensor<64x32xf32>
}
