// RUN: ds-opt %s | ds-opt | FileCheck %s

// Tests grouped keys, a mask, and that lse has one element a row.
// CHECK-LABEL: func.func @attention_c1
func.func @attention_c1(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x6xf32>, %m: tensor<3x5xi1>) {
  // CHECK: train.attention %arg0, %arg1, %arg2 scale 2.500000e-01 : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>) -> (tensor<2x4x3x6xf32>, tensor<2x4x3xf32>)
  %0:2 = train.attention %q, %k, %v scale 0.25
      : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>) -> (tensor<2x4x3x6xf32>, tensor<2x4x3xf32>)
  // CHECK: train.attention %arg0, %arg1, %arg2 mask %arg3 scale 2.500000e-01 causal
  %1:2 = train.attention %q, %k, %v mask %m scale 0.25 causal
      : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>, tensor<3x5xi1>) -> (tensor<2x4x3x6xf32>, tensor<2x4x3xf32>)
  return
}
