// RUN: ds-opt %s --ds-fuse-bias-gradients | FileCheck %s

// Tests a weight as torch.nn.Linear keeps it, a sum over two dimensions, sums that are not rounded, and that both results are where
// the first was.
// CHECK-LABEL: func.func @linear
// CHECK-NEXT:    %[[DY:.*]] = train.reshape %arg1 to [12, 4]
// CHECK-NEXT:    %[[W:.*]], %[[B:.*]] = train.linear_weight_grad %[[DY]], %arg0 transposed {wide} : (tensor<12x4xbf16>, tensor<12x8xbf16>) -> (tensor<4x8xf32>, tensor<4xf32>)
// CHECK-NEXT:    %[[N:.*]] = train.neg %[[W]]
// CHECK-NEXT:    return %[[B]], %[[N]]
func.func @linear(%x: tensor<12x8xbf16>, %dy: tensor<3x4x4xbf16>) -> (tensor<4xf32>, tensor<4x8xf32>) {
  %0 = train.reshape %dy to [12, 4] : (tensor<3x4x4xbf16>) -> tensor<12x4xbf16>
  %w = train.matmul %0 transposed, %x {wide} : (tensor<12x4xbf16>, tensor<12x8xbf16>) -> tensor<4x8xf32>
  %n = train.neg %w : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %b = train.reduce_sum %dy over [0, 1] {wide} : (tensor<3x4x4xbf16>) -> tensor<4xf32>
  return %b, %n : tensor<4xf32>, tensor<4x8xf32>
}

// Tests two layers of one gradient: a residual stream. The second sum is equal to the first, and CSE has made them one.
// CHECK-LABEL: func.func @residual
// CHECK-NEXT:    %[[W:.*]], %[[B:.*]] = train.linear_weight_grad %arg2, %arg0 :
// CHECK-NEXT:    %[[V:.*]] = train.matmul %arg1 transposed, %arg2
// CHECK-NEXT:    return %[[B]], %[[W]], %[[V]]
func.func @residual(%x: tensor<6x8xf32>, %y: tensor<6x3xf32>, %dy: tensor<6x4xf32>) -> (tensor<4xf32>, tensor<8x4xf32>, tensor<3x4xf32>) {
  %b = train.reduce_sum %dy over [0] : (tensor<6x4xf32>) -> tensor<4xf32>
  %w = train.matmul %x transposed, %dy : (tensor<6x8xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
  %v = train.matmul %y transposed, %dy : (tensor<6x3xf32>, tensor<6x4xf32>) -> tensor<3x4xf32>
  return %b, %w, %v : tensor<4xf32>, tensor<8x4xf32>, tensor<3x4xf32>
}
