// RUN: ds-opt %s --ds-narrow-masters=type=bf16 | FileCheck %s
// RUN: ds-opt %s --ds-narrow-masters=type=f16 | FileCheck %s --check-prefix=F16
// RUN: not ds-opt %s --ds-narrow-masters=type=f8 2>&1 | FileCheck %s --check-prefix=REFUSED

// Tests that what is trained gets 16 bits with its first values rounded, and that f64 and frozen parameters keep theirs.
// CHECK: module attributes {train.numerics = #train.numerics<lossy>}
// CHECK: train.variable parameter @w : tensor<4x2xbf16> from #train.file<"w", 0, 32, "F32"> {trainable}
// CHECK: train.variable parameter @half : tensor<2xbf16> from #train.file<"w", 32, 4> {trainable}
// CHECK: train.variable parameter @other : tensor<2xbf16> from #train.file<"w", 36, 4, "F16"> {trainable}
// CHECK: train.variable parameter @literal : tensor<2xbf16> from #train.literal<dense<[1.000000e+00, 1.007810e+00]> : tensor<2xbf16>> {trainable}
// CHECK: train.variable parameter @frozen : tensor<2xf32>
// CHECK: train.variable parameter @double : tensor<2xf64>
// F16:   train.variable parameter @half : tensor<2xf16> from #train.file<"w", 32, 4, "BF16"> {trainable}
// F16:   train.variable parameter @other : tensor<2xf16> from #train.file<"w", 36, 4> {trainable}
// REFUSED: error: type is "f8"; it must be bf16 or f16
train.variable parameter @w : tensor<4x2xf32> from #train.file<"w", 0, 32> {trainable}
train.variable parameter @half : tensor<2xf32> from #train.file<"w", 32, 4, "BF16"> {trainable}
train.variable parameter @other : tensor<2xf32> from #train.file<"w", 36, 4, "F16"> {trainable}
train.variable parameter @literal : tensor<2xf32> from #train.literal<dense<[1.0, 1.01]> : tensor<2xf32>> {trainable}
train.variable parameter @frozen : tensor<2xf32> from #train.fill<0.0>
train.variable parameter @double : tensor<2xf64> from #train.fill<0.0> {trainable}

// Rows are moved as they are; who reads f32 reads them widened.
// CHECK-LABEL: func.func @rows(
// CHECK:      %[[W:.*]] = train.read @w : tensor<4x2xbf16>
// CHECK:      %[[WIDE:.*]] = train.cast %[[W]] to f32
// CHECK:      %[[ROWS:.*]] = train.gather %[[W]], %{{.*}} -> tensor<3x2xbf16>
// CHECK:      return %[[ROWS]], %[[W]], %[[WIDE]]
func.func @rows(%i: tensor<3xi64>) -> (tensor<3x2xbf16>, tensor<4x2xbf16>, tensor<4x2xf32>) {
  %w = train.read @w : tensor<4x2xf32>
  %rows = train.gather %w, %i along 0 : (tensor<4x2xf32>, tensor<3xi64>) -> tensor<3x2xf32>
  %low = train.cast %rows to bf16 : (tensor<3x2xf32>) -> tensor<3x2xbf16>
  %all = train.cast %w to bf16 : (tensor<4x2xf32>) -> tensor<4x2xbf16>
  return %low, %all, %w : tensor<3x2xbf16>, tensor<4x2xbf16>, tensor<4x2xf32>
}
