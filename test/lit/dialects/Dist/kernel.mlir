// RUN: ds-opt %s | ds-opt | FileCheck %s

// Tests calls of kernels: on values, on variables and on both, with and without a workspace.
// CHECK-LABEL: dist.fragment @forward
// CHECK-NEXT:  %[[W:.*]] = train.read @w
// CHECK-NEXT:  %[[Y:.*]] = dist.kernel "transpose" {perm = array<i64: 1, 0>}(%[[W]]) access [1, 2] as [tensor<2x3xf32>, tensor<3x2xf32>] : (tensor<2x3xf32>) -> tensor<3x2xf32>
// CHECK-NEXT:  dist.kernel "increment" {}() access [3] as [tensor<i64>] of [@step] : () -> ()
// CHECK-NEXT:  dist.kernel "elementwise" {}(%[[W]]) access [1, 1, 2] as [tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>] of [@g, unit, @g] workspace 64 : (tensor<2x3xf32>) -> ()
train.variable parameter @w : tensor<2x3xf32> from #train.fill<0.0> {trainable}
train.variable gradient @g : tensor<2x3xf32>
train.variable optimizer @step : tensor<i64> from #train.fill<0.0>
dist.fragment @forward phase forward stage 0 {
  %w = train.read @w : tensor<2x3xf32>
  %y = dist.kernel "transpose" {perm = array<i64: 1, 0>}(%w) access [1, 2] as [tensor<2x3xf32>, tensor<3x2xf32>] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  dist.kernel "increment" {}() access [3] as [tensor<i64>] of [@step] : () -> ()
  dist.kernel "elementwise" {}(%w) access [1, 1, 2] as [tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>] of [@g, unit, @g] workspace 64 : (tensor<2x3xf32>) -> ()
}
