// RUN: ds-opt %s --ds-choose-recompute | FileCheck %s --check-prefix=NONE
// RUN: ds-opt %s --ds-choose-recompute=level=2 | FileCheck %s --check-prefix=CHEAP
// RUN: ds-opt %s --ds-choose-recompute=level=4 | FileCheck %s --check-prefix=WHOLE
// RUN: ds-opt %s --ds-choose-recompute=level=99 | FileCheck %s --check-prefix=ALL
// RUN: ds-opt %s --ds-choose-recompute="level=99 checkpoints=1" | FileCheck %s --check-prefix=ONCE
// RUN: ds-opt %s --ds-choose-recompute="rules=a.log=save,log$=recompute" | FileCheck %s --check-prefix=RULES

// Tests that level 2 of 3 layers repeats what costs no product in two of them; that level 4 repeats all of the first layer but what the
// second reads; that there is no level above the highest; that one checkpoint keeps nothing between layers; that the first rule wins.
// NONE: train.recompute_levels = 6
// NONE-NOT: {train.recompute}
// CHEAP-LABEL: func.func @microbatch
// CHEAP: train.matmul %{{[^{]*}}: (
// CHEAP: train.log %{{[^{]*}}{train.recompute} : (
// CHEAP: train.matmul %{{[^{]*}}: (
// CHEAP: train.log %{{[^{]*}}{train.recompute} : (
// CHEAP: train.matmul %{{[^{]*}}: (
// CHEAP: train.log %{{[^{]*}}: (
// CHEAP-NOT: {train.recompute}
// WHOLE-LABEL: func.func @microbatch
// WHOLE: train.matmul %{{[^{]*}}{train.recompute} : (
// WHOLE: train.log %{{[^{]*}}: (
// WHOLE: train.matmul %{{[^{]*}}: (
// WHOLE: train.log %{{[^{]*}}{train.recompute} : (
// WHOLE: train.matmul %{{[^{]*}}: (
// WHOLE: train.log %{{[^{]*}}: (
// WHOLE-NOT: {train.recompute}
// ALL-LABEL: func.func @microbatch
// ALL: train.matmul %{{[^{]*}}{train.recompute} : (
// ALL: train.log %{{[^{]*}}: (
// ALL: train.matmul %{{[^{]*}}{train.recompute} : (
// ALL: train.log %{{[^{]*}}: (
// ALL: train.matmul %{{[^{]*}}{train.recompute} : (
// ALL: train.log %{{[^{]*}}: (
// ALL-NOT: {train.recompute}
// ONCE: train.recompute_levels = 2
// ONCE-LABEL: func.func @microbatch
// ONCE: train.matmul %{{[^{]*}}{train.recompute} : (
// ONCE: train.log %{{[^{]*}}{train.recompute} : (
// ONCE: train.matmul %{{[^{]*}}{train.recompute} : (
// ONCE: train.log %{{[^{]*}}{train.recompute} : (
// ONCE: train.matmul %{{[^{]*}}{train.recompute} : (
// ONCE: train.log %{{[^{]*}}: (
// ONCE-NOT: {train.recompute}
// RULES-LABEL: func.func @microbatch
// RULES: train.matmul %{{[^{]*}}: (
// RULES: train.log %{{[^{]*}}: (
// RULES: train.matmul %{{[^{]*}}: (
// RULES: train.log %{{[^{]*}}{train.recompute} : (
// RULES: train.matmul %{{[^{]*}}: (
// RULES: train.log %{{[^{]*}}{train.recompute} : (
// RULES-NOT: {train.recompute}
train.variable metric @loss : tensor<f32>
train.variable parameter @u : tensor<16x16xf32> from #train.fill<0.0> {trainable}
train.variable parameter @v : tensor<16x16xf32> from #train.fill<0.0> {trainable}
train.variable parameter @w : tensor<16x16xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"u::gradient" : tensor<16x16xf32>
train.variable gradient @"v::gradient" : tensor<16x16xf32>
train.variable gradient @"w::gradient" : tensor<16x16xf32>
func.func @microbatch(%x: tensor<64x16xf32> {train.input = "x"}) {
  %u = train.read @u : tensor<16x16xf32> loc("u")
  %v = train.read @v : tensor<16x16xf32> loc("v")
  %w = train.read @w : tensor<16x16xf32> loc("w")
  %0 = train.matmul %x, %u : (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32> loc("a.product")
  %1 = train.log %0 : (tensor<64x16xf32>) -> tensor<64x16xf32> loc("a.log")
  %2 = train.matmul %1, %v : (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32> loc("b.product")
  %3 = train.log %2 : (tensor<64x16xf32>) -> tensor<64x16xf32> loc("b.log")
  %4 = train.matmul %3, %w : (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32> loc("c.product")
  %5 = train.log %4 : (tensor<64x16xf32>) -> tensor<64x16xf32> loc("c.log")
  %6 = train.reduce_sum %5 over [0, 1] : (tensor<64x16xf32>) -> tensor<f32> loc("loss")
  train.accumulate %6 into @loss : tensor<f32> loc("loss")
  %g = train.loss_gradient 1.0 : tensor<f32>
  %h = train.reshape %g to [1, 1] : (tensor<f32>) -> tensor<1x1xf32>
  %7 = train.div %h, %4 : (tensor<1x1xf32>, tensor<64x16xf32>) -> tensor<64x16xf32> loc("c.log")
  %8 = train.matmul %7, %w transposed : (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32> loc("c.product")
  %9 = train.matmul %3 transposed, %7 : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<16x16xf32> loc("c.product")
  train.accumulate %9 into @"w::gradient" : tensor<16x16xf32> loc("w")
  %10 = train.div %8, %2 : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32> loc("b.log")
  %11 = train.matmul %10, %v transposed : (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32> loc("b.product")
  %12 = train.matmul %1 transposed, %10 : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<16x16xf32> loc("b.product")
  train.accumulate %12 into @"v::gradient" : tensor<16x16xf32> loc("v")
  %13 = train.div %11, %0 : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32> loc("a.log")
  %14 = train.matmul %x transposed, %13 : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<16x16xf32> loc("a.product")
  train.accumulate %14 into @"u::gradient" : tensor<16x16xf32> loc("u")
  return
}
