// RUN: ds-opt %s --ds-choose-recompute | FileCheck %s --check-prefix=NONE
// RUN: ds-opt %s --ds-choose-recompute=level=2 | FileCheck %s --check-prefix=CHEAP
// RUN: ds-opt %s --ds-choose-recompute=level=4 | FileCheck %s --check-prefix=PRODUCT
// RUN: ds-opt %s --ds-choose-recompute=level=99 | FileCheck %s --check-prefix=ALL
// RUN: ds-opt %s --ds-choose-recompute=full | FileCheck %s --check-prefix=FULL
// RUN: ds-opt %s --ds-choose-recompute="full checkpoints=1" | FileCheck %s --check-prefix=ONCE
// RUN: ds-opt %s --ds-choose-recompute="level=99 dearest=2e-10" | FileCheck %s --check-prefix=DEAREST
// RUN: ds-opt %s --ds-choose-recompute="rules=a.log=save,log$=recompute" | FileCheck %s --check-prefix=RULES

// Tests that a level is a step of one layer: level 2 of 6 repeats what is cheap in two of three layers, level 4 what is cheap in all and the
// product of the first; that there is no level above the highest; that `full` repeats whole layers, but for what later ones read; that one
// checkpoint keeps nothing between layers; that no step is taken which costs
// more for a byte than is asked for, here any that repeats a product; that the first rule wins.
// NONE: train.recompute_summary = #train.recompute_summary<level 0 of 6, layers 0 of 3>
// NONE-NOT: {train.recompute}
// CHEAP: train.recompute_summary = #train.recompute_summary<level 2 of 6, layers 2 of 3>
// CHEAP-LABEL: func.func @microbatch
// CHEAP: train.matmul %{{[^{]*}}: (
// CHEAP: train.tanh %{{[^{]*}}{train.recompute} : (
// CHEAP: train.log %{{[^{]*}}: (
// CHEAP: train.matmul %{{[^{]*}}: (
// CHEAP: train.tanh %{{[^{]*}}{train.recompute} : (
// CHEAP: train.log %{{[^{]*}}: (
// CHEAP: train.matmul %{{[^{]*}}: (
// CHEAP: train.tanh %{{[^{]*}}: (
// CHEAP: train.log %{{[^{]*}}: (
// CHEAP-NOT: {train.recompute}
// PRODUCT: train.recompute_summary = #train.recompute_summary<level 4 of 6, layers 3 of 3>
// PRODUCT-LABEL: func.func @microbatch
// PRODUCT: train.matmul %{{[^{]*}}{train.recompute} : (
// PRODUCT: train.tanh %{{[^{]*}}{train.recompute} : (
// PRODUCT: train.log %{{[^{]*}}: (
// PRODUCT: train.matmul %{{[^{]*}}: (
// PRODUCT: train.tanh %{{[^{]*}}{train.recompute} : (
// PRODUCT: train.log %{{[^{]*}}: (
// PRODUCT: train.matmul %{{[^{]*}}: (
// PRODUCT: train.tanh %{{[^{]*}}{train.recompute} : (
// PRODUCT: train.log %{{[^{]*}}: (
// PRODUCT-NOT: {train.recompute}
// ALL: train.recompute_summary = #train.recompute_summary<level 6 of 6, layers 3 of 3>
// ALL-LABEL: func.func @microbatch
// ALL: train.matmul %{{[^{]*}}{train.recompute} : (
// ALL: train.tanh %{{[^{]*}}{train.recompute} : (
// ALL: train.log %{{[^{]*}}: (
// ALL: train.matmul %{{[^{]*}}{train.recompute} : (
// ALL: train.tanh %{{[^{]*}}{train.recompute} : (
// ALL: train.log %{{[^{]*}}: (
// ALL: train.matmul %{{[^{]*}}{train.recompute} : (
// ALL: train.tanh %{{[^{]*}}{train.recompute} : (
// ALL: train.log %{{[^{]*}}: (
// ALL-NOT: {train.recompute}
// FULL: train.recompute_summary = #train.recompute_summary<level 0 of 0, layers 3 of 3>
// FULL-LABEL: func.func @microbatch
// FULL: train.matmul %{{[^{]*}}{train.recompute} : (
// FULL: train.tanh %{{[^{]*}}{train.recompute} : (
// FULL: train.log %{{[^{]*}}: (
// FULL: train.matmul %{{[^{]*}}{train.recompute} : (
// FULL: train.tanh %{{[^{]*}}{train.recompute} : (
// FULL: train.log %{{[^{]*}}: (
// FULL: train.matmul %{{[^{]*}}{train.recompute} : (
// FULL: train.tanh %{{[^{]*}}{train.recompute} : (
// FULL: train.log %{{[^{]*}}: (
// FULL-NOT: {train.recompute}
// ONCE: train.recompute_summary = #train.recompute_summary<level 0 of 0, layers 1 of 1>
// ONCE-LABEL: func.func @microbatch
// ONCE: train.matmul %{{[^{]*}}{train.recompute} : (
// ONCE: train.tanh %{{[^{]*}}{train.recompute} : (
// ONCE: train.log %{{[^{]*}}{train.recompute} : (
// ONCE: train.matmul %{{[^{]*}}{train.recompute} : (
// ONCE: train.tanh %{{[^{]*}}{train.recompute} : (
// ONCE: train.log %{{[^{]*}}{train.recompute} : (
// ONCE: train.matmul %{{[^{]*}}{train.recompute} : (
// ONCE: train.tanh %{{[^{]*}}{train.recompute} : (
// ONCE: train.log %{{[^{]*}}: (
// ONCE-NOT: {train.recompute}
// DEAREST: train.recompute_summary = #train.recompute_summary<level 3 of 6, layers 3 of 3>
// DEAREST-NOT: train.matmul {{.*}}{train.recompute}
// RULES-LABEL: func.func @microbatch
// RULES: train.matmul %{{[^{]*}}: (
// RULES: train.tanh %{{[^{]*}}: (
// RULES: train.log %{{[^{]*}}: (
// RULES: train.matmul %{{[^{]*}}: (
// RULES: train.tanh %{{[^{]*}}: (
// RULES: train.log %{{[^{]*}}{train.recompute} : (
// RULES: train.matmul %{{[^{]*}}: (
// RULES: train.tanh %{{[^{]*}}: (
// RULES: train.log %{{[^{]*}}{train.recompute} : (
// RULES-NOT: {train.recompute}
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
  %bp = train.matmul %al, %v : (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32> loc("b.product")
  %bt = train.tanh %bp : (tensor<64x16xf32>) -> tensor<64x16xf32> loc("b.tanh")
  %bl = train.log %bt : (tensor<64x16xf32>) -> tensor<64x16xf32> loc("b.log")
  %cp = train.matmul %bl, %w : (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32> loc("c.product")
  %ct = train.tanh %cp : (tensor<64x16xf32>) -> tensor<64x16xf32> loc("c.tanh")
  %cl = train.log %ct : (tensor<64x16xf32>) -> tensor<64x16xf32> loc("c.log")
  %loss = train.reduce_sum %cl over [0, 1] : (tensor<64x16xf32>) -> tensor<f32> loc("loss")
  train.accumulate %loss into @loss : tensor<f32> loc("loss")
  %g = train.loss_gradient 1.0 : tensor<f32>
  %h = train.reshape %g to [1, 1] : (tensor<f32>) -> tensor<1x1xf32>
  %c1 = train.div %h, %ct : (tensor<1x1xf32>, tensor<64x16xf32>) -> tensor<64x16xf32> loc("c.log")
  %c2 = train.mul %c1, %cp : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32> loc("c.tanh")
  %c3 = train.matmul %c2, %w transposed : (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32> loc("c.product")
  %c4 = train.matmul %bl transposed, %c2 : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<16x16xf32> loc("c.product")
  train.accumulate %c4 into @"w::gradient" : tensor<16x16xf32> loc("w")
  %b1 = train.div %c3, %bt : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32> loc("b.log")
  %b2 = train.mul %b1, %bp : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32> loc("b.tanh")
  %b3 = train.matmul %b2, %v transposed : (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32> loc("b.product")
  %b4 = train.matmul %al transposed, %b2 : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<16x16xf32> loc("b.product")
  train.accumulate %b4 into @"v::gradient" : tensor<16x16xf32> loc("v")
  %a1 = train.div %b3, %at : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32> loc("a.log")
  %a2 = train.mul %a1, %ap : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32> loc("a.tanh")
  %a4 = train.matmul %x transposed, %a2 : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<16x16xf32> loc("a.product")
  train.accumulate %a4 into @"u::gradient" : tensor<16x16xf32> loc("u")
  return
}
