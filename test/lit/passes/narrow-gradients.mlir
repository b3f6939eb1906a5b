// RUN: ds-opt %s --ds-narrow-gradients=type=bf16 | FileCheck %s
// RUN: ds-opt %s --ds-narrow-gradients=type=f16 | FileCheck %s --check-prefix=F16

// Tests that contributions are rounded, and that losses and gradients in f64 stay as they are.
// CHECK: module attributes {train.numerics = #train.numerics<lossy>}
// CHECK: train.variable gradient @"w::gradient" of @w : tensor<4xbf16>
// CHECK: train.variable gradient @"d::gradient" of @d : tensor<4xf64>
// CHECK: train.variable metric @loss : tensor<f32>
// F16:   train.variable gradient @"w::gradient" of @w : tensor<4xf16>
train.variable parameter @w : tensor<4xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"w::gradient" of @w : tensor<4xf32>
train.variable parameter @d : tensor<4xf64> from #train.fill<0.0> {trainable}
train.variable gradient @"d::gradient" of @d : tensor<4xf64>
train.variable metric @loss : tensor<f32>

// CHECK-LABEL: func.func @microbatch(
// CHECK-SAME:  %[[Y:.*]]: tensor<4xf32>, %[[Z:.*]]: tensor<4xf64>, %[[LOSS:.*]]: tensor<f32>)
func.func @microbatch(%y: tensor<4xf32>, %z: tensor<4xf64>, %loss: tensor<f32>) {
  // CHECK: %[[LOW:.*]] = train.cast %[[Y]] to bf16 : (tensor<4xf32>) -> tensor<4xbf16>
  // CHECK: train.accumulate %[[LOW]] into @"w::gradient" : tensor<4xbf16>
  // CHECK: train.accumulate %[[Z]] into @"d::gradient" : tensor<4xf64>
  // CHECK: train.accumulate %[[LOSS]] into @loss : tensor<f32>
  train.accumulate %y into @"w::gradient" : tensor<4xf32>
  train.accumulate %z into @"d::gradient" : tensor<4xf64>
  train.accumulate %loss into @loss : tensor<f32>
  return
}
