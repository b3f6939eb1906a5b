// RUN: ds-opt %s --ds-concat-pads | FileCheck %s

// Tests that the gradients of three slices, summed in any order, are joined in the order of their places.
// CHECK-LABEL: func.func @three_parts
// CHECK-NEXT:  %[[Y:.*]] = train.concat %arg0, %arg1, %arg2 along 1 : (tensor<2x3xf32>, tensor<2x1xf32>, tensor<2x4xf32>) -> tensor<2x8xf32>
// CHECK-NEXT:  return %[[Y]]
func.func @three_parts(%a: tensor<2x3xf32>, %b: tensor<2x1xf32>, %c: tensor<2x4xf32>) -> tensor<2x8xf32> {
  %0 = train.pad %a low [0, 0] high [0, 5] interior [0, 0] with 0.0 : (tensor<2x3xf32>) -> tensor<2x8xf32>
  %1 = train.pad %b low [0, 3] high [0, 4] interior [0, 0] with 0.0 : (tensor<2x1xf32>) -> tensor<2x8xf32>
  %2 = train.pad %c low [0, 4] high [0, 0] interior [0, 0] with 0.0 : (tensor<2x4xf32>) -> tensor<2x8xf32>
  %3 = train.add %2, %0 : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %4 = train.add %3, %1 : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %4 : tensor<2x8xf32>
}
