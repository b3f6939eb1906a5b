// RUN: ds-opt %s | ds-opt | FileCheck %s
// RUN: ds-opt %s --canonicalize | FileCheck %s --check-prefix=FOLD

// Tests that operands broadcast from the last dimension on, whichever of the two is wider.
// CHECK-LABEL: func.func @broadcast_elementwise_c3
func.func @broadcast_elementwise_c3(%a: tensor<4x1x3xf32>, %b: tensor<2x1xf32>, %s: tensor<f32>) -> tensor<4x2x3xf32> {
  // CHECK: train.add %{{.*}}, %{{.*}} : (tensor<4x1x3xf32>, tensor<2x1xf32>) -> tensor<4x2x3xf32>
  %0 = train.add %a, %b : (tensor<4x1x3xf32>, tensor<2x1xf32>) -> tensor<4x2x3xf32>
  // CHECK: train.sub %{{.*}}, %{{.*}} : (tensor<f32>, tensor<4x2x3xf32>) -> tensor<4x2x3xf32>
  %1 = train.sub %s, %0 : (tensor<f32>, tensor<4x2x3xf32>) -> tensor<4x2x3xf32>
  return %1 : tensor<4x2x3xf32>
}

// Tests that a dimension of size 0 broadcasts against 1 to 0.
// CHECK-LABEL: func.func @empty
func.func @empty(%a: tensor<0x3xf32>, %b: tensor<1x3xf32>) -> tensor<0x3xf32> {
  // CHECK: train.mul %{{.*}} -> tensor<0x3xf32>
  %0 = train.mul %a, %b : (tensor<0x3xf32>, tensor<1x3xf32>) -> tensor<0x3xf32>
  return %0 : tensor<0x3xf32>
}

// Tests the form of every arithmetic op on floats.
// CHECK-LABEL: func.func @arithmetic
func.func @arithmetic(%a: tensor<2xf64>) -> tensor<2xf64> {
  // CHECK: train.add
  %0 = train.add %a, %a : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
  // CHECK-NEXT: train.sub
  %1 = train.sub %0, %a : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
  // CHECK-NEXT: train.mul
  %2 = train.mul %1, %a : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
  // CHECK-NEXT: train.div
  %3 = train.div %2, %a : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
  // CHECK-NEXT: train.pow
  %4 = train.pow %3, %a : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
  // CHECK-NEXT: train.max
  %5 = train.max %4, %a : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
  // CHECK-NEXT: train.min
  %6 = train.min %5, %a : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
  return %6 : tensor<2xf64>
}

// Tests that i64 and i32 take part in arithmetic, and i1 in logic.
// CHECK-LABEL: func.func @integers
func.func @integers(%a: tensor<2xi64>, %b: tensor<2xi32>, %c: tensor<2xi1>) -> tensor<2xi1> {
  // CHECK: train.div %{{.*}} : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  %0 = train.div %a, %a : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  // CHECK: train.max %{{.*}} : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
  %1 = train.max %b, %b : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
  // CHECK: train.and
  %2 = train.and %c, %c : (tensor<2xi1>, tensor<2xi1>) -> tensor<2xi1>
  // CHECK: train.or
  %3 = train.or %2, %c : (tensor<2xi1>, tensor<2xi1>) -> tensor<2xi1>
  // CHECK: train.xor
  %4 = train.xor %3, %c : (tensor<2xi1>, tensor<2xi1>) -> tensor<2xi1>
  return %4 : tensor<2xi1>
}

// Tests that what leaves every bit alone is folded: x * 1, 1 * x, x / 1, x ** 1, x - 0.
// FOLD-LABEL: func.func @fold_exact
// FOLD-SAME:    (%[[X:.*]]: tensor<3xf32>)
// FOLD-NEXT:    return %[[X]], %[[X]], %[[X]], %[[X]], %[[X]]
func.func @fold_exact(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %one = train.constant dense<1.0> : tensor<f32>
  %ones = train.constant dense<1.0> : tensor<3xf32>
  %zero = train.constant dense<0.0> : tensor<f32>
  %0 = train.mul %x, %one : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %1 = train.mul %ones, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %2 = train.div %x, %one : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %3 = train.pow %x, %one : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %4 = train.sub %x, %zero : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  return %0, %1, %2, %3, %4 : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}

// Tests that x + 0 stays for floats, where it turns -0 into 0, and goes for integers.
// FOLD-LABEL: func.func @fold_add
// FOLD-SAME:    (%[[X:.*]]: tensor<3xf32>, %[[I:.*]]: tensor<3xi64>)
func.func @fold_add(%x: tensor<3xf32>, %i: tensor<3xi64>) -> (tensor<3xf32>, tensor<3xi64>) {
  %zero = train.constant dense<0.0> : tensor<f32>
  %none = train.constant dense<0> : tensor<i64>
  // FOLD: %[[SUM:.*]] = train.add %[[X]]
  %0 = train.add %x, %zero : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %1 = train.add %i, %none : (tensor<3xi64>, tensor<i64>) -> tensor<3xi64>
  // FOLD: return %[[SUM]], %[[I]]
  return %0, %1 : tensor<3xf32>, tensor<3xi64>
}

// Tests that x - (-0) stays: -0 - -0 is 0.
// FOLD-LABEL: func.func @keep_sub_of_minus_zero
func.func @keep_sub_of_minus_zero(%x: tensor<3xf32>) -> tensor<3xf32> {
  %zero = train.constant dense<-0.0> : tensor<f32>
  // FOLD: train.sub
  %0 = train.sub %x, %zero : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// Tests that a product with one stays where it broadcasts.
// FOLD-LABEL: func.func @keep_broadcast
func.func @keep_broadcast(%x: tensor<3xf32>) -> tensor<2x3xf32> {
  %ones = train.constant dense<1.0> : tensor<2x1xf32>
  // FOLD: train.mul
  %0 = train.mul %x, %ones : (tensor<3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// Tests that a constant that is no splat is not taken for one.
// FOLD-LABEL: func.func @keep_vector
func.func @keep_vector(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = train.constant dense<[1.0, 2.0]> : tensor<2xf32>
  // FOLD: train.mul
  %0 = train.mul %x, %c : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
