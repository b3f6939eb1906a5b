train.variable parameter @w : tensor<3xf32> from #train.fill<0.0> {trainable}
// EXAMPLE
