// RUN: ds-opt %s | ds-opt | FileCheck %s

// Tests both flags, the bias, and leading dimensions that broadcast.
// CHECK-LABEL: func.func @products
func.func @products(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>, %bias: tensor<4xf32>, %c: tensor<5x1x4x2xf32>,
                    %d: tensor<6x4x3xf32>) -> tensor<2x4xf32> {
  // CHECK: train.matmul %{{.*}}, %{{.*}} bias %{{.*}} : (tensor<2x3xf32>, tensor<3x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %0 = train.matmul %a, %b bias %bias : (tensor<2x3xf32>, tensor<3x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  // [2, 3]^T [2, 4]
  // CHECK: train.matmul %{{.*}} transposed, %{{.*}} : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %1 = train.matmul %a transposed, %0 : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  // CHECK: train.matmul %{{.*}}, %{{.*}} transposed : (tensor<2x4xf32>, tensor<3x4xf32>) -> tensor<2x3xf32>
  %2 = train.matmul %0, %b transposed : (tensor<2x4xf32>, tensor<3x4xf32>) -> tensor<2x3xf32>
  // CHECK: train.matmul %{{.*}} transposed, %{{.*}} : (tensor<5x1x4x2xf32>, tensor<6x4x3xf32>) -> tensor<5x6x2x3xf32>
  %3 = train.matmul %c transposed, %d : (tensor<5x1x4x2xf32>, tensor<6x4x3xf32>) -> tensor<5x6x2x3xf32>
  return %0 : tensor<2x4xf32>
}

// Tests that a product over nothing has a shape.
// CHECK-LABEL: func.func @empty
func.func @empty(%a: tensor<2x0xf32>, %b: tensor<0x4xf32>) -> tensor<2x4xf32> {
  // CHECK: train.matmul %{{.*}} -> tensor<2x4xf32>
  %0 = train.matmul %a, %b : (tensor<2x0xf32>, tensor<0x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
