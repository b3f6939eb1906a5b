// RUN: ds-opt %s --ds-differentiate --split-input-file | FileCheck %s

// What random numbers are in the step, and what stands for them in @evaluate.

// A stochastic depth: the backward reads the forward's numbers, and nothing flows into them. Evaluated, x * (p / p).
// CHECK-LABEL: func.func @microbatch
train.variable parameter @x : tensor<2x3xf32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[U:.*]] = train.uniform [2, 1] of f32 id 7
  // CHECK: %[[SUM:.*]] = train.add %[[U]]
  // CHECK: %[[KEPT:.*]] = train.floor %[[SUM]]
  // CHECK: train.loss_gradient
  // CHECK-NOT: train.uniform
  // CHECK: train.mul %{{.*}}, %[[KEPT]]
  // CHECK: return
  // CHECK-LABEL: func.func @evaluate
  // CHECK-NOT: train.uniform
  // CHECK-NOT: train.floor
  // CHECK: %[[KEEP:.*]] = train.constant dense<7.500000e-01>
  // CHECK: %[[MEAN:.*]] = train.broadcast %[[KEEP]] to [2, 1]
  // CHECK: train.mul %{{.*}}, %[[MEAN]]
  %x = train.read @x : tensor<2x3xf32>
  %keep = train.constant dense<0.75> : tensor<f32>
  %u = train.uniform [2, 1] of f32 id 7 : tensor<2x1xf32>
  %sum = train.add %u, %keep : (tensor<2x1xf32>, tensor<f32>) -> tensor<2x1xf32>
  %kept = train.floor %sum : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %scaled = train.div %x, %keep : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %y = train.mul %scaled, %kept : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  %loss = train.reduce_sum %y over [0, 1] : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A Bernoulli number is its probability; what decides between two values, the likelier.
// CHECK-LABEL: func.func @evaluate
train.variable parameter @x : tensor<3xf32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK: %[[P:.*]] = train.sigmoid
  // CHECK-NOT: train.uniform
  // CHECK: %[[LOW:.*]] = train.max %[[P]]
  // CHECK: %[[MEAN:.*]] = train.min %[[LOW]]
  // CHECK: train.mul %{{.*}}, %[[MEAN]]
  // CHECK: %[[HALF:.*]] = train.broadcast %{{.*}} to [3]
  // CHECK: %[[LESS:.*]] = train.less %[[HALF]]
  // CHECK: train.select %[[LESS]]
  %x = train.read @x : tensor<3xf32>
  %third = train.constant dense<0.3> : tensor<f32>
  %p = train.sigmoid %x : (tensor<3xf32>) -> tensor<3xf32>
  %u = train.uniform [3] of f32 id 0 : tensor<3xf32>
  %hit = train.less %u, %p : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
  %drawn = train.cast %hit to f32 : (tensor<3xi1>) -> tensor<3xf32>
  %y = train.mul %x, %drawn : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %v = train.uniform [3] of f32 id 1 : tensor<3xf32>
  %skip = train.less %v, %third : (tensor<3xf32>, tensor<f32>) -> tensor<3xi1>
  %z = train.select %skip, %x, %y : (tensor<3xi1>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %loss = train.reduce_sum %z over [0] : (tensor<3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Box and Muller's normal numbers: radius * cos(2 pi u) is 0, and nothing is left of the radius's draw.
// CHECK-LABEL: func.func @evaluate
train.variable parameter @x : tensor<3xf32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  // CHECK-NOT: train.uniform
  // CHECK-NOT: train.cos
  // CHECK: %[[ZERO:.*]] = train.constant dense<0.000000e+00>
  // CHECK: %[[NONE:.*]] = train.broadcast %[[ZERO]] to [3]
  // CHECK: train.mul %{{.*}}, %[[NONE]]
  %x = train.read @x : tensor<3xf32>
  %turn = train.constant dense<6.28318548> : tensor<f32>
  %u = train.uniform [3] of f32 id 0 : tensor<3xf32>
  %angle = train.mul %u, %turn : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %cos = train.cos %angle : (tensor<3xf32>) -> tensor<3xf32>
  %y = train.mul %x, %cos : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %loss = train.reduce_sum %y over [0] : (tensor<3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
