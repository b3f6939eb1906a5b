// RUN: ds-opt %s --ds-simplify-pipeline | FileCheck %s

// Tests what import leaves of a linear layer with a tied, transposed weight: two products that read it as it is stored and
// carry their biases; equal reads are one, and what nobody reads is gone.
// CHECK-LABEL: func.func @forward
// CHECK-NEXT:    %[[W:.*]] = train.read @w
// CHECK-NEXT:    %[[B:.*]] = train.read @b
// CHECK-NEXT:    %[[H:.*]] = train.matmul %arg0, %[[W]] transposed bias %[[B]]
// CHECK-NEXT:    %[[LOSS:.*]] = train.reduce_mean %[[H]] over [0, 1]
// CHECK-NEXT:    return %[[LOSS]]
train.variable parameter @w : tensor<4x3xf32> from #train.fill<0.0> {trainable}
train.variable parameter @b : tensor<4xf32> from #train.fill<0.0> {trainable}
func.func @forward(%x: tensor<2x3xf32>) -> tensor<f32> {
  %w = train.read @w : tensor<4x3xf32>
  %dead = train.read @w : tensor<4x3xf32>
  %t = train.transpose %w by [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>
  %0 = train.matmul %x, %t : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %b = train.read @b : tensor<4xf32>
  %one = train.constant dense<1.0> : tensor<f32>
  %scaled = train.mul %b, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = train.add %scaled, %0 : (tensor<4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = train.reshape %1 to [8] : (tensor<2x4xf32>) -> tensor<8xf32>
  %3 = train.reshape %2 to [2, 4] : (tensor<8xf32>) -> tensor<2x4xf32>
  %4 = train.reduce_mean %3 over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
  return %4 : tensor<f32>
}
