// RUN: ds-opt %s --ds-differentiate --split-input-file | FileCheck %s

// What the backward of softmax, norms, dropout and losses is.

// softmax: from its result alone.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<2x3xf32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<2x3xf32>
  // CHECK: %[[Y:.*]] = train.softmax
  %y = train.softmax %x along 1 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %loss = train.reduce_sum %y over [0, 1] : (tensor<2x3xf32>) -> tensor<f32>
  // CHECK: %[[SEED:.*]] = train.loss_gradient
  // CHECK: %[[DY:.*]] = train.broadcast
  // CHECK-NEXT: %[[DX:.*]] = train.softmax_grad %[[Y]], %[[DY]] along 1
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %loss : tensor<f32>
}

// -----

// log_softmax: from its result alone.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<2x3xf32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<2x3xf32>
  // CHECK: %[[Y:.*]] = train.log_softmax
  %y = train.log_softmax %x along 1 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %loss = train.reduce_sum %y over [0, 1] : (tensor<2x3xf32>) -> tensor<f32>
  // CHECK: %[[SEED:.*]] = train.loss_gradient
  // CHECK: %[[DY:.*]] = train.broadcast
  // CHECK-NEXT: %[[DX:.*]] = train.log_softmax_grad %[[Y]], %[[DY]] along 1
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %loss : tensor<f32>
}

// -----

// layer_norm: one op for all three gradients, from the mean and rstd of the forward pass.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<2x3xf32> from #train.fill<0.0> {trainable}
train.variable parameter @s : tensor<3xf32> from #train.fill<0.0> {trainable}
train.variable parameter @h : tensor<3xf32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<2x3xf32>
  // CHECK: %[[S:.*]] = train.read @s
  %s = train.read @s : tensor<3xf32>
  // CHECK: %[[H:.*]] = train.read @h
  %h = train.read @h : tensor<3xf32>
  // CHECK: %{{.*}}, %[[MEAN:.*]], %[[RSTD:.*]] = train.layer_norm
  %y, %mean, %rstd = train.layer_norm %x, %s, %h epsilon 1.0e-5 : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>)
  %loss = train.reduce_sum %y over [0, 1] : (tensor<2x3xf32>) -> tensor<f32>
  // CHECK: %[[SEED:.*]] = train.loss_gradient
  // CHECK: %[[DY:.*]] = train.broadcast
  // CHECK-NEXT: %[[DX:.*]], %[[DS:.*]], %[[DH:.*]] = train.layer_norm_grad %[[DY]], %[[X]], %[[S]], %[[MEAN]], %[[RSTD]]
  // CHECK-NEXT: train.accumulate %[[DH]] into @"h::gradient"
  // CHECK-NEXT: train.accumulate %[[DS]] into @"s::gradient"
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %loss : tensor<f32>
}

// -----

// dropout: the same mask, drawn again.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<2x3xf32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<2x3xf32>
  %y = train.dropout %x ratio 0.25 id 7 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %loss = train.reduce_sum %y over [0, 1] : (tensor<2x3xf32>) -> tensor<f32>
  // CHECK: %[[SEED:.*]] = train.loss_gradient
  // CHECK: %[[DY:.*]] = train.broadcast
  // CHECK-NEXT: %[[DX:.*]] = train.dropout %[[DY]] ratio 2.500000e-01 id 7
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  // CHECK-NEXT: return
  // CHECK-LABEL: func.func @evaluate
  // CHECK-NOT: train.dropout
  return %loss : tensor<f32>
}

// -----

// cross_entropy: from the log-sum-exp of the forward pass, with its label rule.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<3x5xf32> from #train.fill<0.0> {trainable}
func.func @forward(%l: tensor<3xi64>) -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<3x5xf32>
  // CHECK: %{{.*}}, %[[LSE:.*]] = train.cross_entropy sum
  %loss, %lse = train.cross_entropy sum %x, %l ignore -1 : (tensor<3x5xf32>, tensor<3xi64>) -> (tensor<f32>, tensor<3xf32>)
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK-NEXT: %[[DX:.*]] = train.cross_entropy_grad sum %[[X]], %{{.*}}, %[[LSE]], %[[DY]] ignore -1
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %loss : tensor<f32>
}

// -----

// attention: the probabilities are drawn again from lse; keys that are values too get two contributions.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @q : tensor<1x2x3x4xf32> from #train.fill<0.0> {trainable}
train.variable parameter @k : tensor<1x1x3x4xf32> from #train.fill<0.0> {trainable}
func.func @forward(%m: tensor<3x3xi1>) -> tensor<f32> {
  // CHECK: %[[Q:.*]] = train.read @q
  %q = train.read @q : tensor<1x2x3x4xf32>
  // CHECK: %[[K:.*]] = train.read @k
  %k = train.read @k : tensor<1x1x3x4xf32>
  // CHECK: %[[Y:.*]], %[[LSE:.*]] = train.attention
  %y:2 = train.attention %q, %k, %k mask %m scale 0.5 causal : (tensor<1x2x3x4xf32>, tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>, tensor<3x3xi1>) -> (tensor<1x2x3x4xf32>, tensor<1x2x3xf32>)
  %loss = train.reduce_sum %y#0 over [0, 1, 2, 3] : (tensor<1x2x3x4xf32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.broadcast
  // CHECK-NEXT: %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]] = train.attention_grad %[[DY]], %[[Q]], %[[K]], %[[K]] mask %arg0 of %[[Y]], %[[LSE]] scale 5.000000e-01 causal
  // CHECK-NEXT: %[[SUM:.*]] = train.add %[[DK]], %[[DV]]
  // CHECK-NEXT: train.accumulate %[[SUM]] into @"k::gradient"
  // CHECK-NEXT: train.accumulate %[[DQ]] into @"q::gradient"
  return %loss : tensor<f32>
}

// -----

// packed_attention: one gradient of query, key and value.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<1x3x4x4xf32> from #train.fill<0.0> {trainable}
func.func @forward(%m: tensor<3x3xi1>) -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<1x3x4x4xf32>
  // CHECK: %[[Y:.*]], %[[LSE:.*]] = train.packed_attention
  %y:2 = train.packed_attention %x heads 2 mask %m scale 0.5 causal : (tensor<1x3x4x4xf32>, tensor<3x3xi1>) -> (tensor<1x3x2x4xf32>, tensor<1x2x3xf32>)
  %loss = train.reduce_sum %y#0 over [0, 1, 2, 3] : (tensor<1x3x2x4xf32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.broadcast
  // CHECK-NEXT: %[[DX:.*]] = train.packed_attention_grad %[[DY]], %[[X]] heads 2 mask %arg0 of %[[Y]], %[[LSE]] scale 5.000000e-01 causal
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %loss : tensor<f32>
}
