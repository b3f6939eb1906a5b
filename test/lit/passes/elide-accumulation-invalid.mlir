// This pass has no error of its own; here is what it must leave alone.
// RUN: ds-opt %s --ds-elide-accumulation | FileCheck %s

train.variable gradient @twice : tensor<f32>
train.variable gradient @read : tensor<f32>
train.variable gradient @stored : tensor<f32>
train.variable gradient @across : tensor<f32>

// Tests that two contributions are added, that a read before the sum sees zero, and that what is stored counts.
// CHECK-LABEL:   func.func @microbatch
// CHECK-COUNT-5: train.accumulate
// CHECK-NEXT:    return
func.func @microbatch(%x: tensor<f32>) {
  train.accumulate %x into @twice : tensor<f32>
  train.accumulate %x into @twice : tensor<f32>
  %0 = train.read @read : tensor<f32>
  train.accumulate %0 into @read : tensor<f32>
  train.store %x into @stored : tensor<f32>
  train.accumulate %x into @stored : tensor<f32>
  train.accumulate %x into @across : tensor<f32>
  return
}
// Tests that contributions of two functions of one step are added.
// CHECK-LABEL: func.func @update
// CHECK-NEXT:  train.accumulate
func.func @update(%x: tensor<f32>) {
  train.accumulate %x into @across : tensor<f32>
  return
}
