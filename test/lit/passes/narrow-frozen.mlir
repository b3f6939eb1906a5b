// RUN: ds-opt %s --ds-narrow-frozen | FileCheck %s

// Tests that what is frozen stays as its file has it where all of it is used so, and that rows are widened behind a gather.
// CHECK: train.variable parameter @w : tensor<4x2xbf16> from #train.file<"w.safetensors", 0, 16>
// CHECK: train.variable parameter @table : tensor<8x2xbf16> from #train.file<"w.safetensors", 16, 32>
// CHECK: train.variable parameter @trained : tensor<2xf32> from #train.file<"w.safetensors", 48, 4, "BF16"> {trainable}
// CHECK: train.variable parameter @norm : tensor<2xf32> from #train.file<"w.safetensors", 52, 4, "BF16">
// CHECK: train.variable parameter @other : tensor<2xf32> from #train.file<"w.safetensors", 56, 4, "F16">
// CHECK: train.variable parameter @full : tensor<2xf32> from #train.file<"w.safetensors", 60, 8>
train.variable parameter @w : tensor<4x2xf32> from #train.file<"w.safetensors", 0, 16, "BF16">
train.variable parameter @table : tensor<8x2xf32> from #train.file<"w.safetensors", 16, 32, "BF16">
train.variable parameter @trained : tensor<2xf32> from #train.file<"w.safetensors", 48, 4, "BF16"> {trainable}
train.variable parameter @norm : tensor<2xf32> from #train.file<"w.safetensors", 52, 4, "BF16">
train.variable parameter @other : tensor<2xf32> from #train.file<"w.safetensors", 56, 4, "F16">
train.variable parameter @full : tensor<2xf32> from #train.file<"w.safetensors", 60, 8>

// CHECK-LABEL: func.func @forward(
func.func @forward(%ids: tensor<3xi64>, %x: tensor<2xf32>)
    -> (tensor<2x4xbf16>, tensor<3x2xf32>, tensor<2xbf16>, tensor<2xf32>, tensor<2xbf16>, tensor<2xbf16>) {
  // CHECK: %[[W:.*]] = train.read @w : tensor<4x2xbf16>
  // CHECK: %[[T:.*]] = train.transpose %[[W]] by [1, 0] : (tensor<4x2xbf16>) -> tensor<2x4xbf16>
  %w = train.read @w : tensor<4x2xf32>
  %turned = train.transpose %w by [1, 0] : (tensor<4x2xf32>) -> tensor<2x4xf32>
  %low = train.cast %turned to bf16 : (tensor<2x4xf32>) -> tensor<2x4xbf16>
  // CHECK: %[[TABLE:.*]] = train.read @table : tensor<8x2xbf16>
  // CHECK: %[[ROWS:.*]] = train.gather %[[TABLE]]{{.*}} -> tensor<3x2xbf16>
  // CHECK: %[[WIDE:.*]] = train.cast %[[ROWS]] to f32
  // CHECK: train.mul %[[WIDE]], %[[WIDE]]
  %table = train.read @table : tensor<8x2xf32>
  %rows = train.gather %table, %ids along 0 : (tensor<8x2xf32>, tensor<3xi64>) -> tensor<3x2xf32>
  %square = train.mul %rows, %rows : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  // CHECK: train.cast %{{.*}} to bf16 : (tensor<2xf32>) -> tensor<2xbf16>
  %trained = train.read @trained : tensor<2xf32>
  %rounded = train.cast %trained to bf16 : (tensor<2xf32>) -> tensor<2xbf16>
  %norm = train.read @norm : tensor<2xf32>
  %scaled = train.mul %norm, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  // CHECK: train.cast %{{.*}} to bf16 : (tensor<2xf32>) -> tensor<2xbf16>
  %other = train.read @other : tensor<2xf32>
  %otherLow = train.cast %other to bf16 : (tensor<2xf32>) -> tensor<2xbf16>
  // CHECK: train.cast %{{.*}} to bf16 : (tensor<2xf32>) -> tensor<2xbf16>
  %full = train.read @full : tensor<2xf32>
  %fullLow = train.cast %full to bf16 : (tensor<2xf32>) -> tensor<2xbf16>
  return %low, %square, %rounded, %scaled, %otherLow, %fullLow
      : tensor<2x4xbf16>, tensor<3x2xf32>, tensor<2xbf16>, tensor<2xf32>, tensor<2xbf16>, tensor<2xbf16>
}
