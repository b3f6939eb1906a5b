// RUN: ds-opt %s | ds-opt | FileCheck %s

// CHECK-LABEL: func.func @softmaxes
func.func @softmaxes(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK: train.softmax %{{.*}} along 1 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %0 = train.softmax %x along 1 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: train.log_softmax %{{.*}} along 0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = train.log_softmax %0 along 0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}
