// RUN: ds-opt %s | ds-opt | FileCheck %s

// Tests the number of blocks: 1024 elements are one, 1025 two, none none.
// CHECK-LABEL: func.func @blocks
func.func @blocks(%a: tensor<32x32xf32>, %b: tensor<1025xf64>, %c: tensor<0xf32>) {
  // CHECK: train.block_sum_squares %{{.*}} : (tensor<32x32xf32>) -> tensor<1xf64>
  %0 = train.block_sum_squares %a : (tensor<32x32xf32>) -> tensor<1xf64>
  // CHECK: train.block_sum_squares %{{.*}} : (tensor<1025xf64>) -> tensor<2xf64>
  %1 = train.block_sum_squares %b : (tensor<1025xf64>) -> tensor<2xf64>
  // CHECK: train.block_sum_squares %{{.*}} : (tensor<0xf32>) -> tensor<0xf64>
  %2 = train.block_sum_squares %c : (tensor<0xf32>) -> tensor<0xf64>
  return
}
