// This pass has no error of its own; here is what it must leave alone.
// RUN: ds-opt %s --split-input-file --ds-quantize-products | FileCheck %s

train.variable parameter @w : tensor<32x24xf32> from #train.fill<1.0> {trainable}
train.variable parameter @v : tensor<32x16xf32> from #train.fill<1.0> {trainable}

// Tests dimensions that are no multiples of 16, products in f32, and products of activations.
// CHECK-LABEL: func.func @sizes
// CHECK-NOT:   fp8
func.func @sizes(%x: tensor<48x32xbf16>, %y: tensor<48x32xf32>, %z: tensor<32x16xbf16>) -> (tensor<48x24xbf16>, tensor<48x16xf32>, tensor<48x16xbf16>) {
  %w = train.read @w : tensor<32x24xf32>
  %v = train.read @v : tensor<32x16xf32>
  %0 = train.cast %w to bf16 : (tensor<32x24xf32>) -> tensor<32x24xbf16>
  %1 = train.matmul %x, %0 : (tensor<48x32xbf16>, tensor<32x24xbf16>) -> tensor<48x24xbf16>
  %2 = train.matmul %y, %v : (tensor<48x32xf32>, tensor<32x16xf32>) -> tensor<48x16xf32>
  %3 = train.matmul %x, %z : (tensor<48x32xbf16>, tensor<32x16xbf16>) -> tensor<48x16xbf16>
  return %1, %2, %3 : tensor<48x24xbf16>, tensor<48x16xf32>, tensor<48x16xbf16>
}

// -----

train.variable parameter @head : tensor<16x32xf32> from #train.fill<1.0> {trainable}
train.variable parameter @table : tensor<16x32xf32> from #train.fill<1.0> {trainable}
train.variable gradient @"head::gradient" of @head : tensor<16x32xf32>

// Tests the product that makes logits and its gradients, and one with a table.
// CHECK-LABEL: func.func @logits
// CHECK-NOT:   fp8
func.func @logits(%x: tensor<2x24x32xbf16>, %ids: tensor<48xi64>) -> (tensor<f32>, tensor<48x32xbf16>, tensor<2x24x16xbf16>, tensor<48x32xf32>) {
  %head = train.read @head : tensor<16x32xf32>
  %table = train.read @table : tensor<16x32xf32>
  %0 = train.cast %head to bf16 : (tensor<16x32xf32>) -> tensor<16x32xbf16>
  %1 = train.cast %table to bf16 : (tensor<16x32xf32>) -> tensor<16x32xbf16>
  %2 = train.matmul %x, %0 transposed : (tensor<2x24x32xbf16>, tensor<16x32xbf16>) -> tensor<2x24x16xbf16>
  %3 = train.reshape %2 to [48, 16] : (tensor<2x24x16xbf16>) -> tensor<48x16xbf16>
  %loss, %lse = train.cross_entropy mean %3, %ids ignore -100 : (tensor<48x16xbf16>, tensor<48xi64>) -> (tensor<f32>, tensor<48xf32>)
  %4 = train.loss_gradient 1.000000e+00 : tensor<f32>
  %5 = train.cross_entropy_grad mean %3, %ids, %lse, %4 ignore -100 : (tensor<48x16xbf16>, tensor<48xi64>, tensor<48xf32>, tensor<f32>) -> tensor<48x16xbf16>
  %6 = train.matmul %5, %0 : (tensor<48x16xbf16>, tensor<16x32xbf16>) -> tensor<48x32xbf16>
  %7 = train.reshape %x to [48, 32] : (tensor<2x24x32xbf16>) -> tensor<48x32xbf16>
  %8 = train.matmul %5 transposed, %7 {wide} : (tensor<48x16xbf16>, tensor<48x32xbf16>) -> tensor<16x32xf32>
  train.accumulate %8 into @"head::gradient" : tensor<16x32xf32>
  %9 = train.gather %table, %ids along 0 : (tensor<16x32xf32>, tensor<48xi64>) -> tensor<48x32xf32>
  %10 = train.matmul %x, %1 transposed : (tensor<2x24x32xbf16>, tensor<16x32xbf16>) -> tensor<2x24x16xbf16>
  return %loss, %6, %10, %9 : tensor<f32>, tensor<48x32xbf16>, tensor<2x24x16xbf16>, tensor<48x32xf32>
}
