// RUN: ds-opt %s | ds-opt | FileCheck %s

// Tests the form of a fused loop with two results and a constant in its body.
// CHECK-LABEL: func.func @fused
func.func @fused(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  // CHECK: %[[Y:.*]]:2 = train.fused %{{.*}}, %{{.*}} {
  // CHECK: ^bb0(%[[A0:.*]]: tensor<4x8xf32>, %[[A1:.*]]: tensor<8xf32>):
  // CHECK: train.add %[[A0]], %[[A1]]
  // CHECK: train.yield %{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<4x8xi1>
  // CHECK: } : (tensor<4x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x8xi1>)
  %y:2 = train.fused %x, %b {
  ^bb0(%a0: tensor<4x8xf32>, %a1: tensor<8xf32>):
    %zero = train.constant dense<0.0> : tensor<f32>
    %0 = train.add %a0, %a1 : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    %1 = train.less %0, %zero : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xi1>
    train.yield %0, %1 : tensor<4x8xf32>, tensor<4x8xi1>
  } : (tensor<4x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x8xi1>)
  return %y#0 : tensor<4x8xf32>
}
