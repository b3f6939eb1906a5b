// RUN: ds-opt %s --ds-record-reference | FileCheck %s

// Tests that ops are numbered through all functions, and that the copy has the same numbers.
// CHECK-LABEL: func.func @microbatch
// CHECK-NEXT:  train.exp %arg0 {train.reference = array<i64: 0>}
// CHECK-NEXT:  train.neg %{{.*}} {train.reference = array<i64: 1>}
// CHECK-LABEL: func.func @update
// CHECK-NEXT:  train.constant {{.*}} {train.reference = array<i64: 2>}
// CHECK-LABEL: module @reference
// CHECK:       func.func @microbatch
// CHECK-NEXT:  train.exp %arg0 {train.reference = array<i64: 0>}
// CHECK:       func.func @update
// CHECK-NEXT:  train.constant {{.*}} {train.reference = array<i64: 2>}
func.func @microbatch(%x: tensor<f32>) {
  %0 = train.exp %x : (tensor<f32>) -> tensor<f32>
  %1 = train.neg %0 : (tensor<f32>) -> tensor<f32>
  return
}
func.func @update() {
  %0 = train.constant dense<1.0> : tensor<f32>
  return
}
