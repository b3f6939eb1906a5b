// RUN: ds-opt %s | ds-opt | FileCheck %s

// CHECK-LABEL: func.func @clip_factor
func.func @clip_factor(%norm: tensor<f64>) -> tensor<f64> {
  // CHECK: train.clip_factor %{{.*}} max 1.000000e+00 : (tensor<f64>) -> tensor<f64>
  %0 = train.clip_factor %norm max 1.0 : (tensor<f64>) -> tensor<f64>
  return %0 : tensor<f64>
}
