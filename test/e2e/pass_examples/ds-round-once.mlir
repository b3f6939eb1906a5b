train.variable parameter @w : tensor<64x32xf32> from #train.fill<0.0> {trainable}
// EXAMPLE
