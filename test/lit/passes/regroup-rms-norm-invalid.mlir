// This pass has no error of its own; here is what it must leave alone.
// RUN: ds-opt %s --ds-regroup-rms-norm --split-input-file | FileCheck %s

// Tests a root that something else reads.
// CHECK-LABEL: func.func @two_readers
// CHECK-NOT:   train.rms_norm
// CHECK:       return
func.func @two_readers(%x: tensor<3x4xf32>, %w: tensor<4xf32>) -> (tensor<3x4xf32>, tensor<3x1xf32>) {
  %eps = train.constant dense<0.125> : tensor<f32>
  %0 = train.mul %x, %x : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %1 = train.reduce_mean %0 over [1] : (tensor<3x4xf32>) -> tensor<3xf32>
  %2 = train.reshape %1 to [3, 1] : (tensor<3xf32>) -> tensor<3x1xf32>
  %3 = train.add %2, %eps : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %4 = train.rsqrt %3 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %5 = train.mul %x, %4 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %6 = train.mul %5, %w : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  return %6, %4 : tensor<3x4xf32>, tensor<3x1xf32>
}

// Tests the square of one tensor that scales another.
// CHECK-LABEL: func.func @other_rows
// CHECK-NOT:   train.rms_norm
// CHECK:       return
func.func @other_rows(%x: tensor<3x4xf32>, %z: tensor<3x4xf32>, %w: tensor<4xf32>) -> tensor<3x4xf32> {
  %eps = train.constant dense<0.125> : tensor<f32>
  %0 = train.mul %z, %z : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %1 = train.reduce_mean %0 over [1] : (tensor<3x4xf32>) -> tensor<3xf32>
  %2 = train.reshape %1 to [3, 1] : (tensor<3xf32>) -> tensor<3x1xf32>
  %3 = train.add %2, %eps : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %4 = train.rsqrt %3 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %5 = train.mul %x, %4 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %6 = train.mul %5, %w : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  return %6 : tensor<3x4xf32>
}

// Tests a mean over the rows of a square tensor, whose result broadcasts along the wrong dimension.
// CHECK-LABEL: func.func @columns
// CHECK-NOT:   train.rms_norm
// CHECK:       return
func.func @columns(%x: tensor<4x4xf32>, %w: tensor<4xf32>) -> tensor<4x4xf32> {
  %eps = train.constant dense<0.125> : tensor<f32>
  %0 = train.mul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = train.reduce_mean %0 over [0] : (tensor<4x4xf32>) -> tensor<4xf32>
  %2 = train.reshape %1 to [4, 1] : (tensor<4xf32>) -> tensor<4x1xf32>
  %3 = train.add %2, %eps : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %4 = train.rsqrt %3 : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %5 = train.mul %x, %4 : (tensor<4x4xf32>, tensor<4x1xf32>) -> tensor<4x4xf32>
  %6 = train.mul %5, %w : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  return %6 : tensor<4x4xf32>
}

// Tests a cube in place of the square, and a scale for each element instead of each column.
// CHECK-LABEL: func.func @cube
// CHECK-NOT:   train.rms_norm
// CHECK:       return
func.func @cube(%x: tensor<3x4xf32>, %w: tensor<4xf32>) -> tensor<3x4xf32> {
  %three = train.constant dense<3.0> : tensor<f32>
  %eps = train.constant dense<0.125> : tensor<f32>
  %0 = train.pow %x, %three : (tensor<3x4xf32>, tensor<f32>) -> tensor<3x4xf32>
  %1 = train.reduce_mean %0 over [1] : (tensor<3x4xf32>) -> tensor<3xf32>
  %2 = train.reshape %1 to [3, 1] : (tensor<3xf32>) -> tensor<3x1xf32>
  %3 = train.add %2, %eps : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %4 = train.rsqrt %3 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %5 = train.mul %x, %4 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %6 = train.mul %5, %w : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  return %6 : tensor<3x4xf32>
}

// CHECK-LABEL: func.func @scale_of_elements
// CHECK-NOT:   train.rms_norm
// CHECK:       return
func.func @scale_of_elements(%x: tensor<3x4xf32>, %w: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %eps = train.constant dense<0.125> : tensor<f32>
  %0 = train.mul %x, %x : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %1 = train.reduce_mean %0 over [1] : (tensor<3x4xf32>) -> tensor<3xf32>
  %2 = train.reshape %1 to [3, 1] : (tensor<3xf32>) -> tensor<3x1xf32>
  %3 = train.add %2, %eps : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %4 = train.rsqrt %3 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %5 = train.mul %x, %4 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %6 = train.mul %5, %w : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  return %6 : tensor<3x4xf32>
}
