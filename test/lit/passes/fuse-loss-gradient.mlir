// RUN: ds-opt %s --ds-fuse-loss-gradient | FileCheck %s

// Tests that the loss is made with its gradient, in the backward pass, and what is computed of it comes behind, in its order: here smoothing, and the
// metric. The reference ops of both are named, and the gradient may be scaled by a variable.
// CHECK-LABEL: func.func @microbatch
// CHECK:         train.loss_gradient
// CHECK-NEXT:    train.read @loss_scale
// CHECK-NEXT:    %[[G:.*]] = train.mul
// CHECK-NEXT:    %[[LOSS:.*]], %{{.*}}, %[[DX:.*]] = train.cross_entropy_with_grad mean %arg0, %arg1, %[[G]] ignore -100 classes 4 {dist.pipeline_stage = 1 : i64, train.reference = array<i64: 3, 7>}
// CHECK-NEXT:    %[[TWICE:.*]] = train.add %[[LOSS]], %[[LOSS]]
// CHECK-NEXT:    train.accumulate %[[TWICE]] into @loss
// CHECK-NEXT:    return %[[DX]]
train.variable metric @loss : tensor<f32>
train.variable optimizer @loss_scale : tensor<f32> from #train.fill<8.0>
func.func @microbatch(%x: tensor<3x5xf32>, %l: tensor<3xi64>) -> tensor<3x5xf32> {
  %loss, %lse = train.cross_entropy mean %x, %l ignore -100 classes 4 {dist.pipeline_stage = 1 : i64, train.reference = array<i64: 3>} : (tensor<3x5xf32>, tensor<3xi64>) -> (tensor<f32>, tensor<3xf32>)
  %0 = train.add %loss, %loss {dist.pipeline_stage = 1 : i64} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  train.accumulate %0 into @loss {dist.pipeline_stage = 1 : i64} : tensor<f32>
  %seed = train.loss_gradient 1.0 : tensor<f32>
  %scale = train.read @loss_scale : tensor<f32>
  %g = train.mul %seed, %scale : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %dx = train.cross_entropy_grad mean %x, %l, %lse, %g ignore -100 classes 4 {dist.pipeline_stage = 1 : i64, train.reference = array<i64: 7>} : (tensor<3x5xf32>, tensor<3xi64>, tensor<3xf32>, tensor<f32>) -> tensor<3x5xf32>
  return %dx : tensor<3x5xf32>
}

// Tests two losses that are added: each with its own gradient, and the sum behind the later.
// CHECK-LABEL: func.func @two
// CHECK-NEXT:    %[[SEED:.*]] = train.loss_gradient
// CHECK-NEXT:    %[[B:.*]], %{{.*}}, %{{.*}} = train.cross_entropy_with_grad sum %arg1, %arg2, %[[SEED]]
// CHECK-NEXT:    %[[A:.*]], %{{.*}}, %{{.*}} = train.cross_entropy_with_grad sum %arg0, %arg2, %[[SEED]]
// CHECK-NEXT:    train.add %[[A]], %[[B]]
func.func @two(%x: tensor<3x5xf32>, %y: tensor<3x5xf32>, %l: tensor<3xi64>) -> (tensor<f32>, tensor<3x5xf32>, tensor<3x5xf32>) {
  %a, %la = train.cross_entropy sum %x, %l ignore 0 : (tensor<3x5xf32>, tensor<3xi64>) -> (tensor<f32>, tensor<3xf32>)
  %b, %lb = train.cross_entropy sum %y, %l ignore 0 : (tensor<3x5xf32>, tensor<3xi64>) -> (tensor<f32>, tensor<3xf32>)
  %s = train.add %a, %b : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %seed = train.loss_gradient 1.0 : tensor<f32>
  %dy = train.cross_entropy_grad sum %y, %l, %lb, %seed ignore 0 : (tensor<3x5xf32>, tensor<3xi64>, tensor<3xf32>, tensor<f32>) -> tensor<3x5xf32>
  %dx = train.cross_entropy_grad sum %x, %l, %la, %seed ignore 0 : (tensor<3x5xf32>, tensor<3xi64>, tensor<3xf32>, tensor<f32>) -> tensor<3x5xf32>
  return %s, %dx, %dy : tensor<f32>, tensor<3x5xf32>, tensor<3x5xf32>
}
