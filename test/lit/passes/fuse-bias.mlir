// RUN: ds-opt %s --ds-fuse-bias | FileCheck %s

// Tests that a bias on either side of the sum joins the product, flags and all.
// CHECK-LABEL: func.func @right
// CHECK-NEXT:  %[[Y:.*]] = train.matmul %arg0 transposed, %arg1 bias %arg2 : (tensor<3x2xf32>, tensor<3x4xf32>, tensor<4xf32>)
// CHECK-NEXT:  return %[[Y]]
func.func @right(%x: tensor<3x2xf32>, %w: tensor<3x4xf32>, %b: tensor<4xf32>) -> tensor<2x4xf32> {
  %0 = train.matmul %x transposed, %w : (tensor<3x2xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %1 = train.add %0, %b : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}

// CHECK-LABEL: func.func @left
// CHECK-NEXT:  train.matmul %arg0, %arg1 bias %arg2
// CHECK-NEXT:  return
func.func @left(%x: tensor<5x2x3xf32>, %w: tensor<3x4xf32>, %b: tensor<4xf32>) -> tensor<5x2x4xf32> {
  %0 = train.matmul %x, %w : (tensor<5x2x3xf32>, tensor<3x4xf32>) -> tensor<5x2x4xf32>
  %1 = train.add %b, %0 : (tensor<4xf32>, tensor<5x2x4xf32>) -> tensor<5x2x4xf32>
  return %1 : tensor<5x2x4xf32>
}

// Tests that a bias that is computed after the product is there for the fused one.
// CHECK-LABEL: func.func @late_bias
// CHECK-NEXT:  %[[B:.*]] = train.exp %arg2
// CHECK-NEXT:  train.matmul %arg0, %arg1 bias %[[B]]
func.func @late_bias(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>, %c: tensor<4xf32>) -> tensor<2x4xf32> {
  %0 = train.matmul %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %b = train.exp %c : (tensor<4xf32>) -> tensor<4xf32>
  %1 = train.add %0, %b : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}
