// RUN: ds-opt %s --ds-choose-recompute=level=1 | FileCheck %s --check-prefix=KEPT
// RUN: ds-opt %s --ds-choose-recompute="level=1 away" | FileCheck %s --check-prefix=AWAY
// RUN: sed s/device-host/host-nvme/ %s | ds-opt --ds-choose-recompute="level=1 away" | FileCheck %s --check-prefix=KEPT
// RUN: sed s/3.5e9/1.0e9/ %s | ds-opt --ds-choose-recompute="level=1 away" | FileCheck %s --check-prefix=KEPT

// Tests that beside a link which takes away what the first two layers compute, but not all of the third, the third comes first; that earlier
// layers come first where there is no link, or one that is too slow for any of them.
// KEPT: train.recompute_summary = #train.recompute_summary<level 1 of 6, layers 1 of 3>
// KEPT-LABEL: func.func @microbatch
// KEPT: train.tanh %{{[^{]*}}{train.recompute} : (
// KEPT: train.tanh %{{[^{]*}}: (
// KEPT: train.tanh %{{[^{]*}}: (
// KEPT-NOT: {train.recompute}
// AWAY: train.recompute_summary = #train.recompute_summary<level 1 of 6, layers 1 of 3>
// AWAY-LABEL: func.func @microbatch
// AWAY: train.tanh %{{[^{]*}}: (
// AWAY: train.tanh %{{[^{]*}}: (
// AWAY: train.tanh %{{[^{]*}}{train.recompute} : (
// AWAY: train.log %{{[^{]*}}{train.recompute} : (
// AWAY-NOT: {train.recompute}
module attributes {dist.links = {"device-host" = array<f64: 3.5e9, 0.0>}} {
train.variable metric @loss : tensor<f32>
train.variable parameter @u : tensor<16x16xf32> from #train.fill<0.0> {trainable}
train.variable parameter @v : tensor<16x16xf32> from #train.fill<0.0> {trainable}
train.variable parameter @w : tensor<16x16xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"u::gradient" of @u : tensor<16x16xf32>
train.variable gradient @"v::gradient" of @v : tensor<16x16xf32>
train.variable gradient @"w::gradient" of @w : tensor<16x16xf32>
func.func @microbatch(%x: tensor<64x16xf32> {train.input = "x"}) {
  %u = train.read @u : tensor<16x16xf32> loc("u")
  %v = train.read @v : tensor<16x16xf32> loc("v")
  %w = train.read @w : tensor<16x16xf32> loc("w")
  %ap = train.matmul %x, %u : (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32> loc("a.product")
  %at = train.tanh %ap : (tensor<64x16xf32>) -> tensor<64x16xf32> loc("a.tanh")
  %al = train.log %at : (tensor<64x16xf32>) -> tensor<64x16xf32> loc("a.log")
  %ae = train.exp %al : (tensor<64x16xf32>) -> tensor<64x16xf32> loc("a.exp")
  %bp = train.matmul %ae, %v : (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32> loc("b.product")
  %bt = train.tanh %bp : (tensor<64x16xf32>) -> tensor<64x16xf32> loc("b.tanh")
  %bl = train.log %bt : (tensor<64x16xf32>) -> tensor<64x16xf32> loc("b.log")
  %be = train.exp %bl : (tensor<64x16xf32>) -> tensor<64x16xf32> loc("b.exp")
  %cp = train.matmul %be, %w : (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32> loc("c.product")
  %ct = train.tanh %cp : (tensor<64x16xf32>) -> tensor<64x16xf32> loc("c.tanh")
  %cl = train.log %ct : (tensor<64x16xf32>) -> tensor<64x16xf32> loc("c.log")
  %ce = train.exp %cl : (tensor<64x16xf32>) -> tensor<64x16xf32> loc("c.exp")
  %loss = train.reduce_sum %ce over [0, 1] : (tensor<64x16xf32>) -> tensor<f32> loc("loss")
  train.accumulate %loss into @loss : tensor<f32> loc("loss")
  %g = train.loss_gradient 1.0 : tensor<f32>
  %h = train.reshape %g to [1, 1] : (tensor<f32>) -> tensor<1x1xf32>
  %c1 = train.div %h, %ct : (tensor<1x1xf32>, tensor<64x16xf32>) -> tensor<64x16xf32> loc("c.log")
  %cm = train.mul %c1, %ce : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32> loc("c.exp")
  %cn = train.mul %cm, %cl : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32> loc("c.exp")
  %c2 = train.mul %cn, %cp : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32> loc("c.tanh")
  %c3 = train.matmul %c2, %w transposed : (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32> loc("c.product")
  %c4 = train.matmul %be transposed, %c2 : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<16x16xf32> loc("c.product")
  train.accumulate %c4 into @"w::gradient" : tensor<16x16xf32> loc("w")
  %b1 = train.div %c3, %bt : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32> loc("b.log")
  %b2 = train.mul %b1, %bp : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32> loc("b.tanh")
  %b3 = train.matmul %b2, %v transposed : (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32> loc("b.product")
  %b4 = train.matmul %ae transposed, %b2 : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<16x16xf32> loc("b.product")
  train.accumulate %b4 into @"v::gradient" : tensor<16x16xf32> loc("v")
  %a1 = train.div %b3, %at : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32> loc("a.log")
  %a2 = train.mul %a1, %ap : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32> loc("a.tanh")
  %a4 = train.matmul %x transposed, %a2 : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<16x16xf32> loc("a.product")
  train.accumulate %a4 into @"u::gradient" : tensor<16x16xf32> loc("u")
  return
}
}
