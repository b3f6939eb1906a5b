// RUN: ds-opt %s | ds-opt | FileCheck %s

// Tests the places of a window: (8 + 1 + 1 - 2 * 2 - 1) / 2 + 1 = 3 along the first dimension, (9 + 0 - 3) / 3 + 1 = 3.
// CHECK-LABEL: func.func @conv
func.func @conv(%x: tensor<2x4x8x9xf32>, %w: tensor<6x2x3x3xf32>, %b: tensor<6xf32>) -> tensor<2x6x3x3xf32> {
  // CHECK: train.conv %{{.*}}, %{{.*}} bias %{{.*}} strides [2, 3] dilations [2, 1] low [1, 0] high [1, 0] groups 2
  // CHECK-SAME: -> tensor<2x6x3x3xf32>
  %y = train.conv %x, %w bias %b strides [2, 3] dilations [2, 1] low [1, 0] high [1, 0] groups 2
      : (tensor<2x4x8x9xf32>, tensor<6x2x3x3xf32>, tensor<6xf32>) -> tensor<2x6x3x3xf32>
  // CHECK: train.conv_input_grad %{{.*}}, %{{.*}} strides [2, 3] {{.*}} groups 2 into [2, 4, 8, 9]
  %dx = train.conv_input_grad %y, %w strides [2, 3] dilations [2, 1] low [1, 0] high [1, 0] groups 2 into [2, 4, 8, 9]
      : (tensor<2x6x3x3xf32>, tensor<6x2x3x3xf32>) -> tensor<2x4x8x9xf32>
  // CHECK: train.conv_weight_grad %{{.*}}, %{{.*}} strides [2, 3] {{.*}} groups 2 into [6, 2, 3, 3]
  %dw = train.conv_weight_grad %y, %x strides [2, 3] dilations [2, 1] low [1, 0] high [1, 0] groups 2 into [6, 2, 3, 3]
      : (tensor<2x6x3x3xf32>, tensor<2x4x8x9xf32>) -> tensor<6x2x3x3xf32>
  return %y : tensor<2x6x3x3xf32>
}

// Tests one and three spatial dimensions.
// CHECK-LABEL: func.func @conv_c1_ranks
func.func @conv_c1_ranks(%a: tensor<1x2x5xf64>, %v: tensor<3x2x2xf64>, %c: tensor<1x2x3x4x5xf32>,
                         %w: tensor<1x2x1x2x3xf32>) -> tensor<1x3x4xf64> {
  // CHECK: -> tensor<1x3x4xf64>
  %0 = train.conv %a, %v strides [1] dilations [1] low [0] high [0] groups 1
      : (tensor<1x2x5xf64>, tensor<3x2x2xf64>) -> tensor<1x3x4xf64>
  // CHECK: -> tensor<1x1x3x3x3xf32>
  %1 = train.conv %c, %w strides [1, 1, 1] dilations [1, 1, 1] low [0, 0, 0] high [0, 0, 0] groups 1
      : (tensor<1x2x3x4x5xf32>, tensor<1x2x1x2x3xf32>) -> tensor<1x1x3x3x3xf32>
  return %0 : tensor<1x3x4xf64>
}
