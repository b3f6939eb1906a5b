// RUN: ds-opt %s | ds-opt | FileCheck %s

// Tests both layouts of a weight, and sums of 16 bits that are not rounded.
// CHECK-LABEL: func.func @linear_weight_grad_c1
func.func @linear_weight_grad_c1(%dy: tensor<6x4xf32>, %x: tensor<6x3xf32>) {
  // CHECK: train.linear_weight_grad %arg0, %arg1 : (tensor<6x4xf32>, tensor<6x3xf32>) -> (tensor<3x4xf32>, tensor<4xf32>)
  %w, %b = train.linear_weight_grad %dy, %x : (tensor<6x4xf32>, tensor<6x3xf32>) -> (tensor<3x4xf32>, tensor<4xf32>)
  // CHECK: train.linear_weight_grad %arg0, %arg1 transposed : (tensor<6x4xf32>, tensor<6x3xf32>) -> (tensor<4x3xf32>, tensor<4xf32>)
  %u, %c = train.linear_weight_grad %dy, %x transposed : (tensor<6x4xf32>, tensor<6x3xf32>) -> (tensor<4x3xf32>, tensor<4xf32>)
  return
}

// CHECK-LABEL: func.func @linear_weight_grad_c2
func.func @linear_weight_grad_c2(%dy: tensor<6x4xbf16>, %x: tensor<6x3xbf16>) {
  // CHECK: train.linear_weight_grad %arg0, %arg1 {wide} : (tensor<6x4xbf16>, tensor<6x3xbf16>) -> (tensor<3x4xf32>, tensor<4xf32>)
  %w, %b = train.linear_weight_grad %dy, %x {wide} : (tensor<6x4xbf16>, tensor<6x3xbf16>) -> (tensor<3x4xf32>, tensor<4xf32>)
  return
}
