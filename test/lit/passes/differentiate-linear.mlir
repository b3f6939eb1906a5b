// RUN: ds-opt %s --ds-differentiate --split-input-file | FileCheck %s

// What the backward of products and reductions is.

// reduce_sum: dy, repeated.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<2x3xf32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<2x3xf32>
  %y = train.reduce_sum %x over [0, 1] : (tensor<2x3xf32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK-NEXT: %[[R:.*]] = train.reshape %[[DY]] to [1, 1]
  // CHECK-NEXT: %[[DX:.*]] = train.broadcast %[[R]] to [2, 3]
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %y : tensor<f32>
}

// -----

// reduce_mean: dy / 6, repeated.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<2x3xf32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<2x3xf32>
  %y = train.reduce_mean %x over [0, 1] : (tensor<2x3xf32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK-NEXT: %[[N:.*]] = train.constant dense<6.000000e+00>
  // CHECK-NEXT: %[[S:.*]] = train.div %[[DY]], %[[N]]
  // CHECK-NEXT: %[[R:.*]] = train.reshape %[[S]] to [1, 1]
  // CHECK-NEXT: %[[DX:.*]] = train.broadcast %[[R]] to [2, 3]
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %y : tensor<f32>
}

// -----

// A loss that is a reduction over nothing is its operand.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<f32>
  %y = train.reduce_mean %x over [] : (tensor<f32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK-NEXT: %[[N:.*]] = train.constant dense<1.000000e+00>
  // CHECK-NEXT: %[[DX:.*]] = train.div %[[DY]], %[[N]]
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %y : tensor<f32>
}

// -----

// reduce_max: equal maxima share dy.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<3xf32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<3xf32>
  // CHECK: %[[Y:.*]] = train.reduce_max
  %y = train.reduce_max %x over [0] : (tensor<3xf32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.loss_gradient 1.000000e+00
  // CHECK: %[[MAX:.*]] = train.broadcast
  // CHECK-NEXT: %[[EQ:.*]] = train.equal %[[X]], %[[MAX]]
  // CHECK-NEXT: %[[ONES:.*]] = train.cast %[[EQ]] to f32
  // CHECK-NEXT: %[[COUNT:.*]] = train.reduce_sum %[[ONES]] over [0]
  // CHECK-NEXT: %[[S:.*]] = train.div %[[DY]], %[[COUNT]]
  // CHECK: %[[SHARES:.*]] = train.broadcast
  // CHECK-NEXT: %[[DX:.*]] = train.mul %[[ONES]], %[[SHARES]]
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %y : tensor<f32>
}

// -----

// A linear layer on [5, 2, 3]: its leading dimensions are rows of one product.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<5x2x3xf32> from #train.fill<0.0> {trainable}
train.variable parameter @w : tensor<3x4xf32> from #train.fill<0.0> {trainable}
train.variable parameter @b : tensor<4xf32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<5x2x3xf32>
  // CHECK: %[[W:.*]] = train.read @w
  %w = train.read @w : tensor<3x4xf32>
  // CHECK: %[[B:.*]] = train.read @b
  %b = train.read @b : tensor<4xf32>
  %y = train.matmul %x, %w bias %b : (tensor<5x2x3xf32>, tensor<3x4xf32>, tensor<4xf32>) -> tensor<5x2x4xf32>
  %loss = train.reduce_sum %y over [0, 1, 2] : (tensor<5x2x4xf32>) -> tensor<f32>
  // CHECK: %[[SEED:.*]] = train.loss_gradient
  // CHECK: %[[DY:.*]] = train.broadcast
  // CHECK-NEXT: %[[DB:.*]] = train.reduce_sum %[[DY]] over [0, 1]
  // CHECK-NEXT: %[[ROWS:.*]] = train.reshape %[[X]] to [10, 3]
  // CHECK-NEXT: %[[DROWS:.*]] = train.reshape %[[DY]] to [10, 4]
  // CHECK-NEXT: %[[P:.*]] = train.matmul %[[DROWS]], %[[W]] transposed
  // CHECK-NEXT: %[[DX:.*]] = train.reshape %[[P]] to [5, 2, 3]
  // CHECK-NEXT: %[[DW:.*]] = train.matmul %[[ROWS]] transposed, %[[DROWS]]
  // CHECK-NEXT: train.accumulate %[[DB]] into @"b::gradient"
  // CHECK-NEXT: train.accumulate %[[DW]] into @"w::gradient"
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %loss : tensor<f32>
}

// -----

// x w^T: dx = dy w, dw = dy^T x.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<2x3xf32> from #train.fill<0.0> {trainable}
train.variable parameter @w : tensor<4x3xf32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<2x3xf32>
  // CHECK: %[[W:.*]] = train.read @w
  %w = train.read @w : tensor<4x3xf32>
  %y = train.matmul %x, %w transposed : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
  %loss = train.reduce_sum %y over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
  // CHECK: %[[SEED:.*]] = train.loss_gradient
  // CHECK: %[[DY:.*]] = train.broadcast
  // CHECK-NEXT: %[[DX:.*]] = train.matmul %[[DY]], %[[W]] : (tensor<2x4xf32>, tensor<4x3xf32>)
  // CHECK-NEXT: %[[DW:.*]] = train.matmul %[[DY]] transposed, %[[X]] : (tensor<2x4xf32>, tensor<2x3xf32>)
  // CHECK-NEXT: train.accumulate %[[DW]] into @"w::gradient"
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %loss : tensor<f32>
}

// -----

// x^T w: dx = w dy^T, dw = x dy.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<3x2xf32> from #train.fill<0.0> {trainable}
train.variable parameter @w : tensor<3x4xf32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<3x2xf32>
  // CHECK: %[[W:.*]] = train.read @w
  %w = train.read @w : tensor<3x4xf32>
  %y = train.matmul %x transposed, %w : (tensor<3x2xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %loss = train.reduce_sum %y over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
  // CHECK: %[[SEED:.*]] = train.loss_gradient
  // CHECK: %[[DY:.*]] = train.broadcast
  // CHECK-NEXT: %[[DX:.*]] = train.matmul %[[W]], %[[DY]] transposed : (tensor<3x4xf32>, tensor<2x4xf32>)
  // CHECK-NEXT: %[[DW:.*]] = train.matmul %[[X]], %[[DY]] : (tensor<3x2xf32>, tensor<2x4xf32>)
  // CHECK-NEXT: train.accumulate %[[DW]] into @"w::gradient"
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %loss : tensor<f32>
}

// -----

// x^T w^T: dx = w^T dy^T, dw = dy^T x^T.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<3x2xf32> from #train.fill<0.0> {trainable}
train.variable parameter @w : tensor<4x3xf32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<3x2xf32>
  // CHECK: %[[W:.*]] = train.read @w
  %w = train.read @w : tensor<4x3xf32>
  %y = train.matmul %x transposed, %w transposed : (tensor<3x2xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
  %loss = train.reduce_sum %y over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
  // CHECK: %[[SEED:.*]] = train.loss_gradient
  // CHECK: %[[DY:.*]] = train.broadcast
  // CHECK-NEXT: %[[DX:.*]] = train.matmul %[[W]] transposed, %[[DY]] transposed : (tensor<4x3xf32>, tensor<2x4xf32>) -> tensor<3x2xf32>
  // CHECK-NEXT: %[[DW:.*]] = train.matmul %[[DY]] transposed, %[[X]] transposed : (tensor<2x4xf32>, tensor<3x2xf32>) -> tensor<4x3xf32>
  // CHECK-NEXT: train.accumulate %[[DW]] into @"w::gradient"
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %loss : tensor<f32>
}

// -----

// Broadcast leading dimensions sum back.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<1x2x3xf32> from #train.fill<0.0> {trainable}
train.variable parameter @w : tensor<5x3x4xf32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<1x2x3xf32>
  // CHECK: %[[W:.*]] = train.read @w
  %w = train.read @w : tensor<5x3x4xf32>
  %y = train.matmul %x, %w : (tensor<1x2x3xf32>, tensor<5x3x4xf32>) -> tensor<5x2x4xf32>
  %loss = train.reduce_sum %y over [0, 1, 2] : (tensor<5x2x4xf32>) -> tensor<f32>
  // CHECK: %[[SEED:.*]] = train.loss_gradient
  // CHECK: %[[DY:.*]] = train.broadcast
  // CHECK-NEXT: %[[P:.*]] = train.matmul %[[DY]], %[[W]] transposed
  // CHECK-NEXT: %[[R:.*]] = train.reduce_sum %[[P]] over [0]
  // CHECK-NEXT: %[[DX:.*]] = train.reshape %[[R]] to [1, 2, 3]
  // CHECK-NEXT: %[[DW:.*]] = train.matmul %[[X]] transposed, %[[DY]]
  // CHECK-NEXT: train.accumulate %[[DW]] into @"w::gradient"
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %loss : tensor<f32>
}

// -----

// A product over nothing has gradients of no elements.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<2x0xf32> from #train.fill<0.0> {trainable}
train.variable parameter @w : tensor<0x4xf32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<2x0xf32>
  // CHECK: %[[W:.*]] = train.read @w
  %w = train.read @w : tensor<0x4xf32>
  %y = train.matmul %x, %w : (tensor<2x0xf32>, tensor<0x4xf32>) -> tensor<2x4xf32>
  %loss = train.reduce_sum %y over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
  // CHECK: %[[SEED:.*]] = train.loss_gradient
  // CHECK: %[[DY:.*]] = train.broadcast
  // CHECK-NEXT: %[[DX:.*]] = train.matmul %[[DY]], %[[W]] transposed : {{.*}} -> tensor<2x0xf32>
  // CHECK-NEXT: %[[DW:.*]] = train.matmul %[[X]] transposed, %[[DY]] : {{.*}} -> tensor<0x4xf32>
  // CHECK-NEXT: train.accumulate %[[DW]] into @"w::gradient"
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %loss : tensor<f32>
}
