// RUN: ds-opt %s --ds-widen-sums | FileCheck %s

train.variable gradient @"w::gradient" : tensor<4x3xf32>

// Tests each sum whose one reader wants f32, behind reshapes and transposes too; a product for a gradient.
// CHECK-LABEL: func.func @sums
// CHECK-NOT:   train.cast
func.func @sums(%x: tensor<5x3xbf16>, %dy: tensor<5x4xbf16>, %ids: tensor<5xi64>)
    -> (tensor<1x4xf32>, tensor<3xf32>, tensor<9x4xf32>) {
  // CHECK: %[[P:.*]] = train.matmul %arg0 transposed, %arg1 {wide} : (tensor<5x3xbf16>, tensor<5x4xbf16>) -> tensor<3x4xf32>
  // CHECK: train.transpose %[[P]] by [1, 0] : (tensor<3x4xf32>) -> tensor<4x3xf32>
  %0 = train.matmul %x transposed, %dy : (tensor<5x3xbf16>, tensor<5x4xbf16>) -> tensor<3x4xbf16>
  %1 = train.transpose %0 by [1, 0] : (tensor<3x4xbf16>) -> tensor<4x3xbf16>
  %2 = train.cast %1 to f32 : (tensor<4x3xbf16>) -> tensor<4x3xf32>
  train.accumulate %2 into @"w::gradient" : tensor<4x3xf32>
  // CHECK: %[[S:.*]] = train.reduce_sum %arg1 over [0] {wide} : (tensor<5x4xbf16>) -> tensor<4xf32>
  // CHECK: train.reshape %[[S]] to [1, 4] : (tensor<4xf32>) -> tensor<1x4xf32>
  %3 = train.reduce_sum %dy over [0] : (tensor<5x4xbf16>) -> tensor<4xbf16>
  %4 = train.reshape %3 to [1, 4] : (tensor<4xbf16>) -> tensor<1x4xbf16>
  %5 = train.cast %4 to f32 : (tensor<1x4xbf16>) -> tensor<1x4xf32>
  // CHECK: train.reduce_mean %arg0 over [0] {wide} : (tensor<5x3xbf16>) -> tensor<3xf32>
  %6 = train.reduce_mean %x over [0] : (tensor<5x3xbf16>) -> tensor<3xbf16>
  %7 = train.cast %6 to f32 : (tensor<3xbf16>) -> tensor<3xf32>
  // CHECK: train.gather_grad %arg1, %arg2 along 0 into [9, 4] {wide} : (tensor<5x4xbf16>, tensor<5xi64>) -> tensor<9x4xf32>
  %8 = train.gather_grad %dy, %ids along 0 into [9, 4] : (tensor<5x4xbf16>, tensor<5xi64>) -> tensor<9x4xbf16>
  %9 = train.cast %8 to f32 : (tensor<9x4xbf16>) -> tensor<9x4xf32>
  return %5, %7, %9 : tensor<1x4xf32>, tensor<3xf32>, tensor<9x4xf32>
}

// Tests that a sum of f32 which was rounded for one reader is read whole by another that wants f32.
// CHECK-LABEL: func.func @rounded_and_back
func.func @rounded_and_back(%x: tensor<4xf32>) -> (tensor<4xbf16>, tensor<4xf32>) {
  // CHECK: %[[LOW:.*]] = train.cast %arg0 to bf16
  // CHECK-NEXT: return %[[LOW]], %arg0
  %0 = train.cast %x to bf16 : (tensor<4xf32>) -> tensor<4xbf16>
  %1 = train.cast %0 to f32 : (tensor<4xbf16>) -> tensor<4xf32>
  return %0, %1 : tensor<4xbf16>, tensor<4xf32>
}

// Tests that the rows whose gradient is added up in f32 are not converted first.
// CHECK-LABEL: func.func @gathered
func.func @gathered(%dy: tensor<5x4xbf16>, %ids: tensor<5xi64>) -> tensor<9x4xf32> {
  // CHECK-NEXT: train.gather_grad %arg0, %arg1 along 0 into [9, 4] {wide} : (tensor<5x4xbf16>, tensor<5xi64>) -> tensor<9x4xf32>
  %0 = train.cast %dy to f32 : (tensor<5x4xbf16>) -> tensor<5x4xf32>
  %1 = train.gather_grad %0, %ids along 0 into [9, 4] : (tensor<5x4xf32>, tensor<5xi64>) -> tensor<9x4xf32>
  return %1 : tensor<9x4xf32>
}

// Tests that gradients of a tied weight are added up in f32.
// CHECK-LABEL: func.func @tied
func.func @tied(%x: tensor<5x4xbf16>, %dy: tensor<5x3xbf16>, %other: tensor<4x3xf32>) {
  // CHECK: %[[P:.*]] = train.matmul {{.*}} {wide} : (tensor<5x4xbf16>, tensor<5x3xbf16>) -> tensor<4x3xf32>
  // CHECK-NEXT: train.add %[[P]], %arg2
  %0 = train.matmul %x transposed, %dy : (tensor<5x4xbf16>, tensor<5x3xbf16>) -> tensor<4x3xbf16>
  %1 = train.cast %0 to f32 : (tensor<4x3xbf16>) -> tensor<4x3xf32>
  %2 = train.add %1, %other : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  train.accumulate %2 into @"w::gradient" : tensor<4x3xf32>
  return
}
