// This pass has no error of its own; here is what it must leave alone.
// RUN: ds-opt %s --ds-concat-pads | FileCheck %s

// Tests that parts with a gap between them, or that overlap, stay a sum.
// CHECK-LABEL: func.func @gap
// CHECK-NOT:   train.concat
func.func @gap(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<5xf32> {
  %0 = train.pad %a low [0] high [3] interior [0] with 0.0 : (tensor<2xf32>) -> tensor<5xf32>
  %1 = train.pad %b low [3] high [0] interior [0] with 0.0 : (tensor<2xf32>) -> tensor<5xf32>
  %2 = train.add %0, %1 : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  return %2 : tensor<5xf32>
}

// CHECK-LABEL: func.func @overlap
// CHECK-NOT:   train.concat
func.func @overlap(%a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<5xf32> {
  %0 = train.pad %a low [0] high [2] interior [0] with 0.0 : (tensor<3xf32>) -> tensor<5xf32>
  %1 = train.pad %b low [2] high [0] interior [0] with 0.0 : (tensor<3xf32>) -> tensor<5xf32>
  %2 = train.add %0, %1 : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  return %2 : tensor<5xf32>
}

// Tests that a filling other than 0, spaced elements and different dimensions keep the sum.
// CHECK-LABEL: func.func @not_zeros
// CHECK-NOT:   train.concat
func.func @not_zeros(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<4xf32> {
  %0 = train.pad %a low [0] high [2] interior [0] with 1.0 : (tensor<2xf32>) -> tensor<4xf32>
  %1 = train.pad %b low [2] high [0] interior [0] with 0.0 : (tensor<2xf32>) -> tensor<4xf32>
  %2 = train.add %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// CHECK-LABEL: func.func @two_dimensions
// CHECK-NOT:   train.concat
func.func @two_dimensions(%a: tensor<1x2xf32>, %b: tensor<2x1xf32>) -> tensor<2x2xf32> {
  %0 = train.pad %a low [0, 0] high [1, 0] interior [0, 0] with 0.0 : (tensor<1x2xf32>) -> tensor<2x2xf32>
  %1 = train.pad %b low [0, 1] high [0, 0] interior [0, 0] with 0.0 : (tensor<2x1xf32>) -> tensor<2x2xf32>
  %2 = train.add %0, %1 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %2 : tensor<2x2xf32>
}

// Tests that a part with another reader stays.
// CHECK-LABEL: func.func @read_twice
// CHECK:       train.add
func.func @read_twice(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = train.pad %a low [0] high [2] interior [0] with 0.0 : (tensor<2xf32>) -> tensor<4xf32>
  %1 = train.pad %b low [2] high [0] interior [0] with 0.0 : (tensor<2xf32>) -> tensor<4xf32>
  %2 = train.add %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %2 : tensor<4xf32>, tensor<4xf32>
}
