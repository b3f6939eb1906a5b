// This pass has no error of its own; here is what it must leave alone.
// RUN: ds-opt %s --ds-infer-input-limits | FileCheck %s

// Tests that nothing is said of an input that is computed with, of the data of a lookup, of one nobody reads, of floats.
// CHECK-LABEL: func.func @microbatch
// CHECK-NOT:   train.limit
// CHECK-NOT:   train.ignored
// CHECK:       return
func.func @microbatch(%computed: tensor<4xi64>, %data: tensor<4xi64>, %index: tensor<i64>, %unread: tensor<4xi64>, %x: tensor<5xf32>) {
  %0 = train.gather %x, %computed along 0 : (tensor<5xf32>, tensor<4xi64>) -> tensor<4xf32>
  %1 = train.add %computed, %computed : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  %i = train.add %index, %index : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %2 = train.gather %data, %i along 0 : (tensor<4xi64>, tensor<i64>) -> tensor<i64>
  return
}
