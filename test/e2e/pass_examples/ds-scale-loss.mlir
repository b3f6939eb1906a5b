train.variable parameter @w : tensor<3xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"w::gradient" of @w : tensor<3xf32>
train.variable optimizer @"optimizer::step" : tensor<i64> from #train.fill<0.0>
// EXAMPLE
