// RUN: ds-opt %s | ds-opt | FileCheck %s
// RUN: ds-opt %s --canonicalize | FileCheck %s --check-prefix=FOLD

// Tests that every element type converts into every other.
// CHECK-LABEL: func.func @casts
func.func @casts(%x: tensor<2xf32>) -> tensor<2xf64> {
  // CHECK: train.cast %{{.*}} to i64 : (tensor<2xf32>) -> tensor<2xi64>
  %0 = train.cast %x to i64 : (tensor<2xf32>) -> tensor<2xi64>
  // CHECK: train.cast %{{.*}} to i1 : (tensor<2xi64>) -> tensor<2xi1>
  %1 = train.cast %0 to i1 : (tensor<2xi64>) -> tensor<2xi1>
  // CHECK: train.cast %{{.*}} to f64 : (tensor<2xi1>) -> tensor<2xf64>
  %2 = train.cast %1 to f64 : (tensor<2xi1>) -> tensor<2xf64>
  return %2 : tensor<2xf64>
}

// Tests that a cast to the type that a value has goes.
// FOLD-LABEL: func.func @fold_same
// FOLD-SAME:    (%[[X:.*]]: tensor<2xf32>)
// FOLD-NEXT:    return %[[X]]
func.func @fold_same(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = train.cast %x to f32 : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// Tests that a detour through another type stays: it rounds.
// FOLD-LABEL: func.func @keep_detour
func.func @keep_detour(%x: tensor<2xf64>) -> tensor<2xf64> {
  // FOLD: train.cast %{{.*}} to f32
  %0 = train.cast %x to f32 : (tensor<2xf64>) -> tensor<2xf32>
  // FOLD: train.cast %{{.*}} to f64
  %1 = train.cast %0 to f64 : (tensor<2xf32>) -> tensor<2xf64>
  return %1 : tensor<2xf64>
}

// Tests that no folding looks through a cast that stops gradients.
// FOLD-LABEL: func.func @keep_stop
func.func @keep_stop(%x: tensor<2xbf16>) -> (tensor<2xbf16>, tensor<2xbf16>) {
  // FOLD: train.cast %{{.*}} to bf16 {train.stop_gradient}
  %0 = train.cast %x to bf16 {train.stop_gradient} : (tensor<2xbf16>) -> tensor<2xbf16>
  // FOLD: train.cast %{{.*}} to f32 {train.stop_gradient}
  %1 = train.cast %x to f32 {train.stop_gradient} : (tensor<2xbf16>) -> tensor<2xf32>
  // FOLD: train.cast %{{.*}} to bf16
  %2 = train.cast %1 to bf16 : (tensor<2xf32>) -> tensor<2xbf16>
  return %0, %2 : tensor<2xbf16>, tensor<2xbf16>
}
