// RUN: ds-opt %s --ds-differentiate --split-input-file | FileCheck %s

// What the backward of ops that move elements is.

// reshape: back to the shape of its input.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<6xf32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<6xf32>
  %y = train.reshape %x to [2, 3] : (tensor<6xf32>) -> tensor<2x3xf32>
  %loss = train.reduce_sum %y over [0, 1] : (tensor<2x3xf32>) -> tensor<f32>
  // CHECK: %[[SEED:.*]] = train.loss_gradient
  // CHECK: %[[DY:.*]] = train.broadcast
  // CHECK-NEXT: %[[DX:.*]] = train.reshape %[[DY]] to [6]
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %loss : tensor<f32>
}

// -----

// transpose: by the inverse permutation.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<2x3x4xf32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<2x3x4xf32>
  %y = train.transpose %x by [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %loss = train.reduce_sum %y over [0, 1, 2] : (tensor<4x2x3xf32>) -> tensor<f32>
  // CHECK: %[[SEED:.*]] = train.loss_gradient
  // CHECK: %[[DY:.*]] = train.broadcast
  // CHECK-NEXT: %[[DX:.*]] = train.transpose %[[DY]] by [1, 2, 0]
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %loss : tensor<f32>
}

// -----

// broadcast: the sum over the repeats.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<2x1xf32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<2x1xf32>
  %y = train.broadcast %x to [4, 2, 3] : (tensor<2x1xf32>) -> tensor<4x2x3xf32>
  %loss = train.reduce_sum %y over [0, 1, 2] : (tensor<4x2x3xf32>) -> tensor<f32>
  // CHECK: %[[SEED:.*]] = train.loss_gradient
  // CHECK: %[[DY:.*]] = train.broadcast
  // CHECK-NEXT: %[[R:.*]] = train.reduce_sum %[[DY]] over [0, 2]
  // CHECK-NEXT: %[[DX:.*]] = train.reshape %[[R]] to [2, 1]
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %loss : tensor<f32>
}

// -----

// slice: elements 1, 3, 5 of 7 get dy, the rest 0: one before, one after, one between.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<7xf32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<7xf32>
  %y = train.slice %x from [1] size [3] step [2] : (tensor<7xf32>) -> tensor<3xf32>
  %loss = train.reduce_sum %y over [0] : (tensor<3xf32>) -> tensor<f32>
  // CHECK: %[[SEED:.*]] = train.loss_gradient
  // CHECK: %[[DY:.*]] = train.broadcast
  // CHECK-NEXT: %[[DX:.*]] = train.pad %[[DY]] low [1] high [1] interior [1] with 0.000000e+00 : (tensor<3xf32>) -> tensor<7xf32>
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %loss : tensor<f32>
}

// -----

// A slice of nothing has a gradient of zeros.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<7xf32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<7xf32>
  %y = train.slice %x from [2] size [0] step [1] : (tensor<7xf32>) -> tensor<0xf32>
  %loss = train.reduce_sum %y over [0] : (tensor<0xf32>) -> tensor<f32>
  // CHECK: %[[SEED:.*]] = train.loss_gradient
  // CHECK: %[[DX:.*]] = train.pad %{{.*}} low [2] high [5] interior [0] with 0.000000e+00 : (tensor<0xf32>) -> tensor<7xf32>
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %loss : tensor<f32>
}

// -----

// pad: its dual.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<3xf32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<3xf32>
  %y = train.pad %x low [1] high [2] interior [1] with 0.5 : (tensor<3xf32>) -> tensor<8xf32>
  %loss = train.reduce_sum %y over [0] : (tensor<8xf32>) -> tensor<f32>
  // CHECK: %[[SEED:.*]] = train.loss_gradient
  // CHECK: %[[DY:.*]] = train.broadcast
  // CHECK-NEXT: %[[DX:.*]] = train.slice %[[DY]] from [1] size [3] step [2]
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %loss : tensor<f32>
}

// -----

// concat: each input gets its part.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<2x1xf32> from #train.fill<0.0> {trainable}
train.variable parameter @z : tensor<2x3xf32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<2x1xf32>
  // CHECK: %[[Z:.*]] = train.read @z
  %z = train.read @z : tensor<2x3xf32>
  %y = train.concat %x, %z along 1 : (tensor<2x1xf32>, tensor<2x3xf32>) -> tensor<2x4xf32>
  %loss = train.reduce_sum %y over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
  // CHECK: %[[SEED:.*]] = train.loss_gradient
  // CHECK: %[[DY:.*]] = train.broadcast
  // CHECK-NEXT: %[[DX:.*]] = train.slice %[[DY]] from [0, 0] size [2, 1] step [1, 1]
  // CHECK-NEXT: %[[DZ:.*]] = train.slice %[[DY]] from [0, 1] size [2, 3] step [1, 1]
  // CHECK-NEXT: train.accumulate %[[DZ]] into @"z::gradient"
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %loss : tensor<f32>
}

// -----

// A frozen part of a concat gets nothing, and the next one still its own part.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @z : tensor<2x3xf32> from #train.fill<0.0> {trainable}
func.func @forward(%f: tensor<2x1xf32>) -> tensor<f32> {
  // CHECK: %[[Z:.*]] = train.read @z
  %z = train.read @z : tensor<2x3xf32>
  %y = train.concat %f, %z along 1 : (tensor<2x1xf32>, tensor<2x3xf32>) -> tensor<2x4xf32>
  %loss = train.reduce_sum %y over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
  // CHECK: %[[SEED:.*]] = train.loss_gradient
  // CHECK: %[[DY:.*]] = train.broadcast
  // CHECK-NEXT: %[[DZ:.*]] = train.slice %[[DY]] from [0, 1] size [2, 3] step [1, 1]
  // CHECK-NEXT: train.accumulate %[[DZ]] into @"z::gradient"
  return %loss : tensor<f32>
}

// -----

// gather: each slice back to its index.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<5x3xf32> from #train.fill<0.0> {trainable}
func.func @forward(%i: tensor<2xi64>) -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<5x3xf32>
  %y = train.gather %x, %i along 0 : (tensor<5x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  %loss = train.reduce_sum %y over [0, 1] : (tensor<2x3xf32>) -> tensor<f32>
  // CHECK: %[[SEED:.*]] = train.loss_gradient
  // CHECK: %[[DY:.*]] = train.broadcast
  // CHECK-NEXT: %[[DX:.*]] = train.gather_grad %[[DY]], %{{.*}} along 0 into [5, 3]
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %loss : tensor<f32>
}

// -----

// gather with a padding index: no gradient reaches that place.
train.variable parameter @w : tensor<5x3xf32> from #train.fill<0.0> {trainable}
// CHECK-LABEL: func.func @microbatch(%arg0: tensor<2x2xi64>
func.func @forward(%i: tensor<2x2xi64> {train.input = "i"}) -> tensor<f32> {
  %x = train.read @w : tensor<5x3xf32>
  // CHECK: train.gather %{{.*}}, %arg0 along 0 : (tensor<5x3xf32>
  %y = train.gather %x, %i along 0 {train.padding_index = 4 : i64} : (tensor<5x3xf32>, tensor<2x2xi64>) -> tensor<2x2x3xf32>
  %loss = train.reduce_sum %y over [0, 1, 2] : (tensor<2x2x3xf32>) -> tensor<f32>
  // CHECK:      %[[DY:.*]] = train.broadcast
  // CHECK:      %[[PAD:.*]] = train.constant dense<4> : tensor<i64>
  // CHECK-NEXT: %[[FLAG:.*]] = train.equal %arg0, %[[PAD]]
  // CHECK-NEXT: %[[WIDE:.*]] = train.reshape %[[FLAG]] to [2, 2, 1]
  // CHECK:      %[[KEPT:.*]] = train.select %[[WIDE]], %{{.*}}, %[[DY]]
  // CHECK-NEXT: train.gather_grad %[[KEPT]], %arg0 along 0 into [5, 3]
  return %loss : tensor<f32>
}
