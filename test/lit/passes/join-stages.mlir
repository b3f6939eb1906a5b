// RUN: ds-opt %s --ds-join-stages --split-input-file | FileCheck %s

// Tests what stages tell each other once a step. The first role adds the other's gradient of the tied parameter to its own and sends
// the sum back; partial sums of the norm are packed by who holds the parameter first, gathered, and viewed in the parameters' order; the
// last role sends the loss, the first stores it. The sum of the tied gradient has another order than one rank's.
// CHECK:       module attributes {train.numerics = #train.numerics<reassociated>} {
// CHECK-LABEL: dist.fragment @"update::0" phase update pipe 0 {
// CHECK-NEXT:    %[[THEIRS:.*]] = dist.load @"t::gradient::from::1"
// CHECK-NEXT:    train.accumulate %[[THEIRS]] into @"t::gradient"
// CHECK-NEXT:    %[[SUM:.*]] = train.read @"t::gradient"
// CHECK-NEXT:    dist.send %[[SUM]] on @"tied::0-1"
// CHECK-NEXT:    %[[G:.*]] = train.read @"t::gradient"
// CHECK-NEXT:    %[[P:.*]] = train.block_sum_squares %[[G]]
// CHECK-NEXT:    %[[PACK:.*]] = dist.pack %[[P]] at [0] : (tensor<2xf64>) -> tensor<2xf64>
// CHECK-NEXT:    %[[ALL:.*]] = dist.all_gather %[[PACK]] on @mesh axis "pipe" : (tensor<2xf64>) -> tensor<4xf64>
// CHECK-NEXT:    %[[A:.*]] = dist.view %[[ALL]] at 0 : tensor<4xf64> -> tensor<2xf64>
// CHECK-NEXT:    %[[B:.*]] = dist.view %[[ALL]] at 2 : tensor<4xf64> -> tensor<1xf64>
// CHECK-NEXT:    %[[N:.*]] = train.global_norm %[[A]], %[[B]]
// CHECK-LABEL: dist.fragment @"update::1" phase update pipe 1 {
// CHECK-NEXT:    %[[OWN:.*]] = train.read @"t::gradient"
// CHECK-NEXT:    dist.send %[[OWN]] on @"tied::1-0"
// CHECK-NEXT:    %[[TOTAL:.*]] = dist.load @"t::gradient::sum::1"
// CHECK-NEXT:    train.store %[[TOTAL]] into @"t::gradient"
// CHECK-NEXT:    %[[V:.*]] = train.read @"v::gradient"
// CHECK-NEXT:    %[[Q:.*]] = train.block_sum_squares %[[V]]
// CHECK-NEXT:    dist.pack %[[Q]] at [0] : (tensor<1xf64>) -> tensor<2xf64>
// CHECK:         train.store %{{.*}} into @grad_norm
// CHECK-NEXT:    %[[L:.*]] = train.read @loss
// CHECK-NEXT:    dist.send %[[L]] on @"step::loss"
// CHECK-NEXT:  }
// CHECK:       dist.channel @"tied::1-0" axis "pipe" from 1 to 0
// CHECK-LABEL: dist.fragment @"step::stored_loss" phase metric pipe 0 {
// CHECK-NEXT:    %[[T:.*]] = dist.load @"step::loss::value"
// CHECK-NEXT:    train.store %[[T]] into @loss
// CHECK-LABEL: dist.role @stage0
// CHECK:         dist.call @"backward::0" microbatch 0
// CHECK-NEXT:    dist.call @"receive::update::0" microbatch 0
// CHECK-NEXT:    dist.call @"update::0" microbatch 0
// CHECK-NEXT:    dist.call @"receive::step::loss" microbatch 0
// CHECK-NEXT:    dist.call @"step::stored_loss" microbatch 0
// CHECK-LABEL: dist.role @stage1
// CHECK:         dist.call @"receive::update::1" microbatch 0
// CHECK-NEXT:    dist.call @"update::1" microbatch 0
// CHECK-NEXT:  }
dist.mesh @mesh ["pipe", "data", "tensor"] [2, 1, 1]
train.variable parameter @t : tensor<1500xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"t::gradient" of @t : tensor<1500xf32>
train.variable parameter @v : tensor<4xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"v::gradient" of @v : tensor<4xf32>
train.variable metric @loss : tensor<f32>
train.variable metric @grad_norm : tensor<f64>
dist.fragment @"forward::0" phase forward stage 0 {
  %t = train.read @t : tensor<1500xf32>
}
dist.fragment @"forward::1" phase forward stage 1 {
  %t = train.read @t : tensor<1500xf32>
  %v = train.read @v : tensor<4xf32>
  %0 = train.reduce_sum %v over [0] : (tensor<4xf32>) -> tensor<f32>
  train.accumulate %0 into @loss : tensor<f32>
}
dist.fragment @"backward::0" phase backward stage 0 {
  %g = train.constant dense<1.0> : tensor<1500xf32>
  train.accumulate %g into @"t::gradient" : tensor<1500xf32>
}
dist.fragment @"backward::1" phase backward stage 1 {
  %g = train.constant dense<1.0> : tensor<1500xf32>
  train.accumulate %g into @"t::gradient" : tensor<1500xf32>
}
dist.fragment @"update::0" phase update pipe 0 {
  %0 = train.read @"t::gradient" : tensor<1500xf32>
  %1 = train.block_sum_squares %0 : (tensor<1500xf32>) -> tensor<2xf64>
  %2 = train.read @"v::gradient" : tensor<4xf32>
  %3 = train.block_sum_squares %2 : (tensor<4xf32>) -> tensor<1xf64>
  %4 = train.global_norm %1, %3 : (tensor<2xf64>, tensor<1xf64>) -> tensor<f64>
  train.store %4 into @grad_norm : tensor<f64>
}
dist.fragment @"update::1" phase update pipe 1 {
  %0 = train.read @"t::gradient" : tensor<1500xf32>
  %1 = train.block_sum_squares %0 : (tensor<1500xf32>) -> tensor<2xf64>
  %2 = train.read @"v::gradient" : tensor<4xf32>
  %3 = train.block_sum_squares %2 : (tensor<4xf32>) -> tensor<1xf64>
  %4 = train.global_norm %1, %3 : (tensor<2xf64>, tensor<1xf64>) -> tensor<f64>
  train.store %4 into @grad_norm : tensor<f64>
}
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

// -----

// Tests that a role which reads a parameter and adds nothing to its gradient takes the sum of those that do, and that one role's sum
// has the order of one rank.
// CHECK:       {{^}}module {
// CHECK-LABEL: dist.fragment @"update::0" phase update pipe 0 {
// CHECK-NEXT:    %[[TOTAL:.*]] = dist.load @"t::gradient::sum::0"
// CHECK-NEXT:    train.store %[[TOTAL]] into @"t::gradient"
// CHECK-NEXT:  }
// CHECK-LABEL: dist.fragment @"update::1" phase update pipe 1 {
// CHECK-NEXT:    %[[OWN:.*]] = train.read @"t::gradient"
// CHECK-NEXT:    dist.send %[[OWN]] on @"tied::1-0"
// CHECK-NEXT:  }
// CHECK-NOT:   "tied::0-1"
dist.mesh @mesh ["pipe", "data", "tensor"] [2, 1, 1]
train.variable parameter @t : tensor<4xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"t::gradient" of @t : tensor<4xf32>
dist.fragment @"forward::0" phase forward stage 0 {
  %t = train.read @t : tensor<4xf32>
}
dist.fragment @"forward::1" phase forward stage 1 {
  %t = train.read @t : tensor<4xf32>
}
dist.fragment @"backward::1" phase backward stage 1 {
  %g = train.constant dense<1.0> : tensor<4xf32>
  train.accumulate %g into @"t::gradient" : tensor<4xf32>
}
dist.fragment @"update::0" phase update pipe 0 {
}
dist.fragment @"update::1" phase update pipe 1 {
}
dist.role @stage0 ranks [0, 0] {
  dist.program @step {
    dist.call @"forward::0" microbatch 0
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
