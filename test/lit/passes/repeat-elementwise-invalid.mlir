// This pass has no error of its own; here is what it must leave alone.
// RUN: ds-opt %s --ds-repeat-elementwise | FileCheck %s

// Tests a function without a backward pass, and a chain whose start the backward does not read.
train.variable metric @a : tensor<2x2xf32>
// CHECK-LABEL: func.func @evaluate
// CHECK-COUNT-1: train.exp
// CHECK-NOT:   train.exp
// CHECK:       return
func.func @evaluate(%x: tensor<2x2xf32>) {
  %0 = train.exp %x : (tensor<2x2xf32>) -> tensor<2x2xf32>
  train.store %0 into @a : tensor<2x2xf32>
  return
}

// CHECK-LABEL: func.func @microbatch
// CHECK:       %[[E:.*]] = train.exp
// CHECK:       train.loss_gradient
// CHECK-NEXT:  train.store %[[E]] into @a
func.func @microbatch(%x: tensor<2x2xf32>) {
  %0 = train.matmul %x, %x : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = train.exp %0 : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %g = train.loss_gradient 1.0 : tensor<f32>
  train.store %1 into @a : tensor<2x2xf32>
  return
}
