// RUN: ds-opt %s | ds-opt | FileCheck %s

// CHECK-LABEL: func.func @dropout
func.func @dropout(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // CHECK: train.dropout %{{.*}} ratio 0.000000e+00 id 0 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %0 = train.dropout %x ratio 0.0 id 0 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
