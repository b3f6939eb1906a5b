// RUN: ds-opt %s | ds-opt | FileCheck %s

// Tests that the joined dimension is the sum: 2 + 0 + 3.
// CHECK-LABEL: func.func @concats
func.func @concats(%a: tensor<4x2xf32>, %b: tensor<4x0xf32>, %c: tensor<4x3xf32>) -> tensor<4x5xf32> {
  // CHECK: train.concat %{{.*}}, %{{.*}}, %{{.*}} along 1 : (tensor<4x2xf32>, tensor<4x0xf32>, tensor<4x3xf32>) -> tensor<4x5xf32>
  %0 = train.concat %a, %b, %c along 1 : (tensor<4x2xf32>, tensor<4x0xf32>, tensor<4x3xf32>) -> tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}
