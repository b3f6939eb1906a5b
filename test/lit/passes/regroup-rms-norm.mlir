// RUN: ds-opt %s --ds-regroup-rms-norm --split-input-file --verify-diagnostics | FileCheck %s

// Tests what torch's dynamo exporter writes of Llama's norm.
// CHECK-LABEL: func.func @reciprocal
// CHECK-NEXT:  %[[Y:.*]], %{{.*}} = train.rms_norm %arg0, %arg1 epsilon 1.250000e-01 :
// CHECK-SAME:  (tensor<2x3x4xf32>, tensor<4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3xf32>)
// CHECK-NEXT:  return %[[Y]]
func.func @reciprocal(%x: tensor<2x3x4xf32>, %w: tensor<4xf32>) -> tensor<2x3x4xf32> {
  %two = train.constant dense<2.0> : tensor<f32>
  %eps = train.constant dense<0.125> : tensor<f32>
  %0 = train.pow %x, %two : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x3x4xf32>
  %1 = train.reduce_mean %0 over [2] : (tensor<2x3x4xf32>) -> tensor<2x3xf32>
  %2 = train.reshape %1 to [2, 3, 1] : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
  %3 = train.add %2, %eps : (tensor<2x3x1xf32>, tensor<f32>) -> tensor<2x3x1xf32>
  %4 = train.sqrt %3 : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %5 = train.reciprocal %4 : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %6 = train.mul %x, %5 : (tensor<2x3x4xf32>, tensor<2x3x1xf32>) -> tensor<2x3x4xf32>
  %7 = train.mul %w, %6 : (tensor<4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %7 : tensor<2x3x4xf32>
}

// Tests what the TorchScript exporter writes, where one divided by the root scales, and operands in the other order.
// CHECK-LABEL: func.func @quotient
// CHECK-NEXT:  train.rms_norm %arg0, %arg1 epsilon 1.250000e-01
// CHECK-NEXT:  return
func.func @quotient(%x: tensor<3x4xf64>, %w: tensor<4xf64>) -> tensor<3x4xf64> {
  %one = train.constant dense<1.0> : tensor<f64>
  %eps = train.constant dense<0.125> : tensor<f64>
  %0 = train.mul %x, %x : (tensor<3x4xf64>, tensor<3x4xf64>) -> tensor<3x4xf64>
  %1 = train.reduce_mean %0 over [1] : (tensor<3x4xf64>) -> tensor<3xf64>
  %2 = train.reshape %1 to [3, 1] : (tensor<3xf64>) -> tensor<3x1xf64>
  %3 = train.add %eps, %2 : (tensor<f64>, tensor<3x1xf64>) -> tensor<3x1xf64>
  %4 = train.sqrt %3 : (tensor<3x1xf64>) -> tensor<3x1xf64>
  %5 = train.div %one, %4 : (tensor<f64>, tensor<3x1xf64>) -> tensor<3x1xf64>
  %6 = train.mul %5, %x : (tensor<3x1xf64>, tensor<3x4xf64>) -> tensor<3x4xf64>
  %7 = train.mul %6, %w : (tensor<3x4xf64>, tensor<4xf64>) -> tensor<3x4xf64>
  return %7 : tensor<3x4xf64>
}

// Tests the reciprocal root as one op, and rows divided by their root; the scale may be computed, as Gemma's 1 + w.
// CHECK-LABEL: func.func @two_norms
// CHECK-NEXT:  %[[ONE:.*]] = train.constant dense<1.0
// CHECK-NEXT:  %[[SCALE:.*]] = train.add %arg1, %[[ONE]]
// CHECK-NEXT:  %[[X:.*]], %{{.*}} = train.rms_norm %arg0, %[[SCALE]] epsilon 1.250000e-01
// CHECK-NEXT:  train.rms_norm %[[X]], %arg1 epsilon 2.500000e-01
// CHECK-NEXT:  return
func.func @two_norms(%x: tensor<3x4xf32>, %w: tensor<4xf32>) -> tensor<3x4xf32> {
  %one = train.constant dense<1.0> : tensor<f32>
  %eps = train.constant dense<0.125> : tensor<f32>
  %more = train.constant dense<0.25> : tensor<f32>
  %scale = train.add %w, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %0 = train.mul %x, %x : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %1 = train.reduce_mean %0 over [1] : (tensor<3x4xf32>) -> tensor<3xf32>
  %2 = train.reshape %1 to [3, 1] : (tensor<3xf32>) -> tensor<3x1xf32>
  %3 = train.add %2, %eps : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %4 = train.rsqrt %3 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %5 = train.mul %x, %4 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %6 = train.mul %5, %scale : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %7 = train.mul %6, %6 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %8 = train.reduce_mean %7 over [1] : (tensor<3x4xf32>) -> tensor<3xf32>
  %9 = train.reshape %8 to [3, 1] : (tensor<3xf32>) -> tensor<3x1xf32>
  %10 = train.add %9, %more : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %11 = train.sqrt %10 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %12 = train.div %6, %11 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %13 = train.mul %12, %w : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  return %13 : tensor<3x4xf32>
}
