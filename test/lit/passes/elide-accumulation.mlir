// RUN: ds-opt %s --ds-elide-accumulation | FileCheck %s

train.variable gradient @"w::gradient" : tensor<f32>
train.variable metric @loss : tensor<f32>

// Tests that a sum of one is stored; the loss has one contribution a program, in the step and in evaluation.
// CHECK-LABEL: func.func @microbatch
// CHECK-NEXT:  train.store %arg0 into @loss
// CHECK-NEXT:  train.store %arg0 into @"w::gradient"
// CHECK-NOT:   train.accumulate
func.func @microbatch(%x: tensor<f32>) {
  train.accumulate %x into @loss : tensor<f32>
  train.accumulate %x into @"w::gradient" : tensor<f32>
  return
}
// CHECK-LABEL: func.func @evaluate
// CHECK-NEXT:  train.store %arg0 into @loss
func.func @evaluate(%x: tensor<f32>) {
  train.accumulate %x into @loss : tensor<f32>
  return
}
// Reads of another function see the same value either way.
// CHECK-LABEL: func.func @update
func.func @update() -> tensor<f32> {
  %0 = train.read @"w::gradient" : tensor<f32>
  return %0 : tensor<f32>
}
