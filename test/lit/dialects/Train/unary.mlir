// RUN: ds-opt %s | ds-opt | FileCheck %s

// Tests the form of every op of one operand; the result is typed like it.
// CHECK-LABEL: func.func @unary
func.func @unary(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK: train.neg %{{.*}} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %0 = train.neg %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK-NEXT: train.abs
  %1 = train.abs %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK-NEXT: train.sqrt
  %2 = train.sqrt %1 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK-NEXT: train.rsqrt
  %3 = train.rsqrt %2 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK-NEXT: train.reciprocal
  %4 = train.reciprocal %3 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK-NEXT: train.exp
  %5 = train.exp %4 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK-NEXT: train.log
  %6 = train.log %5 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK-NEXT: train.erf
  %7 = train.erf %6 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK-NEXT: train.tanh
  %8 = train.tanh %7 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK-NEXT: train.sigmoid
  %9 = train.sigmoid %8 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK-NEXT: train.relu
  %10 = train.relu %9 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK-NEXT: train.sin
  %11 = train.sin %10 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK-NEXT: train.cos
  %12 = train.cos %11 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK-NEXT: train.sign
  %13 = train.sign %12 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK-NEXT: train.floor
  %14 = train.floor %13 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK-NEXT: train.ceil
  %15 = train.ceil %14 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK-NEXT: train.round
  %16 = train.round %15 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK-NEXT: train.atan
  %17 = train.atan %16 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK-NEXT: train.log1p
  %18 = train.log1p %17 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK-NEXT: train.expm1
  %19 = train.expm1 %18 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK-NEXT: train.gelu_tanh %
  %20 = train.gelu_tanh %19 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK-NEXT: train.gelu_tanh_slope
  %21 = train.gelu_tanh_slope %20 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %21 : tensor<2x3xf32>
}

// Tests the ops that integers and booleans know too.
// CHECK-LABEL: func.func @other_types
func.func @other_types(%i: tensor<i64>, %b: tensor<i1>, %x: tensor<2xf64>) -> tensor<2xi1> {
  // CHECK: train.neg %{{.*}} : (tensor<i64>) -> tensor<i64>
  %0 = train.neg %i : (tensor<i64>) -> tensor<i64>
  // CHECK: train.not %{{.*}} : (tensor<i1>) -> tensor<i1>
  %1 = train.not %b : (tensor<i1>) -> tensor<i1>
  // CHECK: train.is_nan %{{.*}} : (tensor<2xf64>) -> tensor<2xi1>
  %2 = train.is_nan %x : (tensor<2xf64>) -> tensor<2xi1>
  return %2 : tensor<2xi1>
}
