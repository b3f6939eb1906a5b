// RUN: ds-opt %s | ds-opt | FileCheck %s

// CHECK-LABEL: func.func @uniform
func.func @uniform() -> (tensor<4x1xf32>, tensor<f64>) {
  // CHECK: train.uniform [4, 1] of f32 id 0 : tensor<4x1xf32>
  %0 = train.uniform [4, 1] of f32 id 0 : tensor<4x1xf32>
  // CHECK: train.uniform [] of f64 id 7 : tensor<f64>
  %1 = train.uniform [] of f64 id 7 : tensor<f64>
  return %0, %1 : tensor<4x1xf32>, tensor<f64>
}
