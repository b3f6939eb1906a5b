// RUN: ds-opt %s --ds-differentiate --split-input-file | FileCheck %s

// What the backward of convolution, pooling and their norms is, and what evaluation makes of batch statistics.

// conv: one op for each operand; the bias is summed over samples and places.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<2x3x5xf32> from #train.fill<0.0> {trainable}
train.variable parameter @w : tensor<4x3x2xf32> from #train.fill<0.0> {trainable}
train.variable parameter @b : tensor<4xf32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<2x3x5xf32>
  // CHECK: %[[W:.*]] = train.read @w
  %w = train.read @w : tensor<4x3x2xf32>
  %b = train.read @b : tensor<4xf32>
  %y = train.conv %x, %w bias %b strides [2] dilations [1] low [1] high [0] groups 1
      : (tensor<2x3x5xf32>, tensor<4x3x2xf32>, tensor<4xf32>) -> tensor<2x4x3xf32>
  %loss = train.reduce_sum %y over [0, 1, 2] : (tensor<2x4x3xf32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.broadcast
  // CHECK-NEXT: %[[DX:.*]] = train.conv_input_grad %[[DY]], %[[W]] strides [2] dilations [1] low [1] high [0] groups 1 into [2, 3, 5]
  // CHECK-NEXT: %[[DW:.*]] = train.conv_weight_grad %[[DY]], %[[X]] strides [2] dilations [1] low [1] high [0] groups 1 into [4, 3, 2]
  // CHECK-NEXT: %[[DB:.*]] = train.reduce_sum %[[DY]] over [0, 2]
  // CHECK-NEXT: train.accumulate %[[DB]] into @"b::gradient"
  // CHECK-NEXT: train.accumulate %[[DW]] into @"w::gradient"
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %loss : tensor<f32>
}

// -----

// The transposed convolution: its gradients are convolutions again.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<2x4x3xf32> from #train.fill<0.0> {trainable}
train.variable parameter @w : tensor<4x3x2xf32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[X:.*]] = train.read @x
  %x = train.read @x : tensor<2x4x3xf32>
  // CHECK: %[[W:.*]] = train.read @w
  %w = train.read @w : tensor<4x3x2xf32>
  %y = train.conv_input_grad %x, %w strides [2] dilations [1] low [1] high [0] groups 1 into [2, 3, 5]
      : (tensor<2x4x3xf32>, tensor<4x3x2xf32>) -> tensor<2x3x5xf32>
  %loss = train.reduce_sum %y over [0, 1, 2] : (tensor<2x3x5xf32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = train.broadcast
  // CHECK-NEXT: train.conv %[[DY]], %[[W]] strides [2] dilations [1] low [1] high [0] groups 1
  // CHECK-NEXT: train.conv_weight_grad %[[X]], %[[DY]] strides [2] {{.*}} into [4, 3, 2]
  return %loss : tensor<f32>
}

// -----

// Pools: the maximum from its input, the mean from nothing.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<2x3x6xf32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  %x = train.read @x : tensor<2x3x6xf32>
  // CHECK: %[[Y:.*]] = train.max_pool
  %y = train.max_pool %x window [2] strides [1] dilations [1] low [0] high [0] : (tensor<2x3x6xf32>) -> tensor<2x3x5xf32>
  %z = train.average_pool %y window [2] strides [1] dilations [1] low [0] high [0] : (tensor<2x3x5xf32>) -> tensor<2x3x4xf32>
  %loss = train.reduce_sum %z over [0, 1, 2] : (tensor<2x3x4xf32>) -> tensor<f32>
  // CHECK: %[[DZ:.*]] = train.broadcast
  // CHECK-NEXT: %[[DY:.*]] = train.average_pool_grad %[[DZ]] window [2] {{.*}} into [2, 3, 5]
  // CHECK-NEXT: %[[DX:.*]] = train.max_pool_grad %[[DY]], %{{.*}} window [2]
  // CHECK-NEXT: train.accumulate %[[DX]]
  return %loss : tensor<f32>
}

// -----

// rms_norm: one op for both gradients, from the factor of the forward pass.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<2x3xf32> from #train.fill<0.0> {trainable}
train.variable parameter @s : tensor<3xf32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  %x = train.read @x : tensor<2x3xf32>
  %s = train.read @s : tensor<3xf32>
  // CHECK: %{{.*}}, %[[RRMS:.*]] = train.rms_norm
  %y, %r = train.rms_norm %x, %s epsilon 1.0e-5 : (tensor<2x3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>)
  %loss = train.reduce_sum %y over [0, 1] : (tensor<2x3xf32>) -> tensor<f32>
  // CHECK: %[[DX:.*]], %[[DS:.*]] = train.rms_norm_grad %{{.*}}, %{{.*}}, %{{.*}}, %[[RRMS]]
  // CHECK-NEXT: train.accumulate %[[DS]] into @"s::gradient"
  // CHECK-NEXT: train.accumulate %[[DX]] into @"x::gradient"
  return %loss : tensor<f32>
}

// -----

// batch_norm: its update stays in the forward pass and comes once; evaluation reads what it leaves, and leaves it.
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<2x3xf32> from #train.fill<0.0> {trainable}
train.variable parameter @s : tensor<3xf32> from #train.fill<0.0> {trainable}
train.variable buffer @mean : tensor<3xf32> from #train.fill<0.0> {persistent}
train.variable buffer @variance : tensor<3xf32> from #train.fill<1.0> {persistent}
func.func @forward() -> tensor<f32> {
  %x = train.read @x : tensor<2x3xf32>
  %s = train.read @s : tensor<3xf32>
  // CHECK: %{{.*}}, %[[MEAN:.*]], %[[VARIANCE:.*]], %[[RSTD:.*]] = train.batch_norm
  %y, %m, %v, %r = train.batch_norm %x, %s, %s epsilon 1.0e-5 : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  // CHECK: train.update_average %[[MEAN]] into @mean
  train.update_average %m into @mean momentum 0.9 correction 1.0 : tensor<3xf32>
  // CHECK: train.update_average %[[VARIANCE]] into @variance
  train.update_average %v into @variance momentum 0.9 correction 2.0 : tensor<3xf32>
  %loss = train.reduce_sum %y over [0, 1] : (tensor<2x3xf32>) -> tensor<f32>
  // CHECK: train.loss_gradient
  // CHECK-NOT: train.update_average
  // CHECK: train.batch_norm_grad %{{.*}}, %{{.*}}, %{{.*}}, %[[MEAN]], %[[RSTD]]
  // CHECK-LABEL: func.func @evaluate
  // CHECK-NOT: train.batch_norm
  // CHECK: %[[M:.*]] = train.read @mean
  // CHECK: %[[V:.*]] = train.read @variance
  // CHECK: train.add %[[V]]
  // CHECK: train.rsqrt
  // CHECK-NOT: train.update_average
  return %loss : tensor<f32>
}

// -----

// Without an average of its statistics a batch norm stays one in evaluation.
// CHECK-LABEL: func.func @evaluate
train.variable parameter @x : tensor<2x3xf32> from #train.fill<0.0> {trainable}
func.func @forward(%s: tensor<3xf32>) -> tensor<f32> {
  %x = train.read @x : tensor<2x3xf32>
  // CHECK: train.batch_norm
  %y, %m, %v, %r = train.batch_norm %x, %s, %s epsilon 1.0e-5 : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  %loss = train.reduce_sum %y over [0, 1] : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
