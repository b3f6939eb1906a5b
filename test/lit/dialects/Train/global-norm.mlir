// RUN: ds-opt %s | ds-opt | FileCheck %s

// CHECK-LABEL: func.func @global_norms
func.func @global_norms(%a: tensor<2xf64>, %b: tensor<0xf64>) -> tensor<f64> {
  // CHECK: train.global_norm %{{.*}}, %{{.*}} : (tensor<2xf64>, tensor<0xf64>) -> tensor<f64>
  %0 = train.global_norm %a, %b : (tensor<2xf64>, tensor<0xf64>) -> tensor<f64>
  // Of nothing it is 0.
  // CHECK: train.global_norm : () -> tensor<f64>
  %1 = train.global_norm : () -> tensor<f64>
  return %0 : tensor<f64>
}
