// RUN: ds-opt %s | FileCheck %s

// Tests what of bf16 stays f32: statistics, log sums, losses, scales of norms; and sums that say so.
// CHECK-LABEL: func.func @types
func.func @types(%x: tensor<2x4xbf16>, %w: tensor<4x4xbf16>, %gamma: tensor<4xf32>, %labels: tensor<2xi64>, %q: tensor<1x2x3x4xbf16>) {
  // CHECK: -> tensor<2x4xbf16>
  %0 = train.matmul %x, %w : (tensor<2x4xbf16>, tensor<4x4xbf16>) -> tensor<2x4xbf16>
  // CHECK: {wide} : {{.*}} -> tensor<2x4xf32>
  %1 = train.matmul %x, %w {wide} : (tensor<2x4xbf16>, tensor<4x4xbf16>) -> tensor<2x4xf32>
  // CHECK: (tensor<2x4xbf16>, tensor<2xf32>, tensor<2xf32>)
  %2, %mean, %rstd = train.layer_norm %x, %gamma, %gamma epsilon 1.0e-5 : (tensor<2x4xbf16>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4xbf16>, tensor<2xf32>, tensor<2xf32>)
  // CHECK: (tensor<2x4xbf16>, tensor<4xf32>, tensor<4xf32>)
  %3, %dgamma, %dbeta = train.layer_norm_grad %2, %x, %gamma, %mean, %rstd : (tensor<2x4xbf16>, tensor<2x4xbf16>, tensor<4xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2x4xbf16>, tensor<4xf32>, tensor<4xf32>)
  // CHECK: (tensor<f32>, tensor<2xf32>)
  %loss, %lse = train.cross_entropy mean %x, %labels ignore -100 : (tensor<2x4xbf16>, tensor<2xi64>) -> (tensor<f32>, tensor<2xf32>)
  // CHECK: -> tensor<2x4xbf16>
  %4 = train.cross_entropy_grad mean %x, %labels, %lse, %loss ignore -100 : (tensor<2x4xbf16>, tensor<2xi64>, tensor<2xf32>, tensor<f32>) -> tensor<2x4xbf16>
  // CHECK: (tensor<1x2x3x4xbf16>, tensor<1x2x3xf32>)
  %5, %sums = train.attention %q, %q, %q scale 0.5 : (tensor<1x2x3x4xbf16>, tensor<1x2x3x4xbf16>, tensor<1x2x3x4xbf16>) -> (tensor<1x2x3x4xbf16>, tensor<1x2x3xf32>)
  // CHECK: train.cast %{{.*}} to f32
  %6 = train.cast %x to f32 : (tensor<2x4xbf16>) -> tensor<2x4xf32>
  return
}
