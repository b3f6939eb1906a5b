// RUN: ds-opt %s --ds-pad-vocabulary --split-input-file | FileCheck %s

// Tests a bias, a weight whose columns are the classes, and logits of three dimensions.
// CHECK-LABEL: func.func @biased
// CHECK-NEXT:    %[[W:.*]] = train.pad %arg1 low [0, 0] high [0, 55] interior [0, 0] with 0.000000e+00 : (tensor<8x9xf32>) -> tensor<8x64xf32>
// CHECK-NEXT:    %[[B:.*]] = train.pad %arg2 low [0] high [55] interior [0] with 0.000000e+00 : (tensor<9xf32>) -> tensor<64xf32>
// CHECK-NEXT:    %[[P:.*]] = train.matmul %arg0, %[[W]] bias %[[B]] : (tensor<2x3x8xf32>, tensor<8x64xf32>, tensor<64xf32>) -> tensor<2x3x64xf32>
// CHECK-NEXT:    %[[L:.*]] = train.reshape %[[P]] to [6, 64]
// CHECK-NEXT:    train.cross_entropy sum %[[L]], %arg3 ignore -1 classes 9 : (tensor<6x64xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<6xf32>)
func.func @biased(%x: tensor<2x3x8xf32>, %w: tensor<8x9xf32>, %b: tensor<9xf32>, %y: tensor<6xi64>) -> tensor<f32> {
  %0 = train.matmul %x, %w bias %b : (tensor<2x3x8xf32>, tensor<8x9xf32>, tensor<9xf32>) -> tensor<2x3x9xf32>
  %1 = train.reshape %0 to [6, 9] : (tensor<2x3x9xf32>) -> tensor<6x9xf32>
  %loss, %lse = train.cross_entropy sum %1, %y ignore -1 : (tensor<6x9xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<6xf32>)
  return %loss : tensor<f32>
}
