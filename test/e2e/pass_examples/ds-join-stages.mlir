dist.mesh @mesh ["pipe", "data", "tensor"] [2, 1, 1]
train.variable parameter @t : tensor<4xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"t::gradient" of @t : tensor<4xf32>
train.variable metric @loss : tensor<f32>
dist.fragment @"forward::0" phase forward stage 0 {
  %t = train.read @t : tensor<4xf32>
}
dist.fragment @"forward::1" phase forward stage 1 {
  %t = train.read @t : tensor<4xf32>
  %0 = train.reduce_sum %t over [0] : (tensor<4xf32>) -> tensor<f32>
  train.accumulate %0 into @loss : tensor<f32>
}
dist.fragment @"backward::0" phase backward stage 0 {
  %g = train.constant dense<1.0> : tensor<4xf32>
  train.accumulate %g into @"t::gradient" : tensor<4xf32>
}
dist.fragment @"backward::1" phase backward stage 1 {
  %g = train.constant dense<1.0> : tensor<4xf32>
  train.accumulate %g into @"t::gradient" : tensor<4xf32>
}
// EXAMPLE
dist.role @stage0 ranks [0, 0] {
  dist.program @step {
    dist.call @"forward::0" microbatch 0
    dist.call @"backward::0" microbatch 0
    dist.call @"update::0" microbatch 0
  }
}
dist.role @stage1 ranks [1, 1] {
  dist.program @step {
    dist.call @"forward::1" microbatch 0
    dist.call @"backward::1" microbatch 0
    dist.call @"update::1" microbatch 0
  }
}
