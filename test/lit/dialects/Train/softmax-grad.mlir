// RUN: ds-opt %s | ds-opt | FileCheck %s

// CHECK-LABEL: func.func @softmax_grads
func.func @softmax_grads(%y: tensor<2x3xf32>, %g: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK: train.softmax_grad %{{.*}}, %{{.*}} along 1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %0 = train.softmax_grad %y, %g along 1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: train.log_softmax_grad %{{.*}}, %{{.*}} along 0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = train.log_softmax_grad %y, %0 along 0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}
