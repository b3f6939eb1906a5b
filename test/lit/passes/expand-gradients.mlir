// RUN: ds-opt %s --ds-expand-gradients | FileCheck %s

// Tests that several uses add up, and that the sum of a tensor's elements is differentiated.
// CHECK-LABEL: func.func @square
func.func @square(%x: tensor<3xf32>) -> tensor<3xf32> {
  // CHECK: %[[ONE:.*]] = train.constant dense<1.000000e+00> : tensor<3xf32>
  // CHECK: %[[L:.*]] = train.mul %[[ONE]], %arg0
  // CHECK: %[[R:.*]] = train.mul %[[ONE]], %arg0
  // CHECK: %[[SUM:.*]] = train.add %[[L]], %[[R]]
  // CHECK: return %[[SUM]]
  %y = train.mul %x, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %g = train.gradient %y, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %g : tensor<3xf32>
}

// Tests that variables are independent of each other (%y of %x), and that what plays no part has a derivative of zero.
// CHECK-LABEL: func.func @independent
func.func @independent(%x: tensor<3xf32>, %z: tensor<3xf32>, %u: tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<f32>) {
  // CHECK: %[[Y:.*]] = train.mul %arg0, %arg0
  // CHECK: %[[ONE:.*]] = train.constant
  // CHECK: %[[DY:.*]] = train.mul %[[ONE]], %arg1
  // CHECK-NEXT: %[[ZEROS:.*]] = train.constant dense<0.000000e+00> : tensor<3xf32>
  // CHECK-NEXT: %[[ZERO:.*]] = train.constant dense<0.000000e+00> : tensor<f32>
  // CHECK-NEXT: return %[[DY]], %[[ZEROS]], %[[ZERO]]
  %y = train.mul %x, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %w = train.mul %y, %z : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %g:3 = train.gradient %w, %y, %x, %u fixed %z : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<f32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<f32>)
  return %g#0, %g#1, %g#2 : tensor<3xf32>, tensor<3xf32>, tensor<f32>
}

// Tests that nothing flows through what is fixed, %y.
// CHECK-LABEL: func.func @fixed
func.func @fixed(%x: tensor<f32>) -> tensor<f32> {
  // CHECK: %[[Y:.*]] = train.mul %arg0, %arg0
  // CHECK: %[[ONE:.*]] = train.constant
  // CHECK: %[[DX:.*]] = train.mul %[[ONE]], %[[Y]]
  // CHECK-NEXT: return %[[DX]]
  %y = train.mul %x, %x : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %w = train.mul %y, %x : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %g = train.gradient %w, %x fixed %y : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  return %g : tensor<f32>
}
