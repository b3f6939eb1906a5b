// RUN: ds-opt %s | ds-opt | FileCheck %s

train.variable gradient @g : tensor<2xf32>
train.variable metric @loss : tensor<f32>

// CHECK-LABEL: func.func @accumulate
func.func @accumulate(%x: tensor<2xf32>, %loss: tensor<f32>) {
  // CHECK: train.accumulate %{{.*}} into @g : tensor<2xf32>
  train.accumulate %x into @g : tensor<2xf32>
  // CHECK: train.accumulate %{{.*}} into @loss : tensor<f32>
  train.accumulate %loss into @loss : tensor<f32>
  return
}
