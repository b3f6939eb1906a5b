// RUN: ds-opt %s --ds-quantize-products | FileCheck %s
// RUN: ds-opt %s --ds-quantize-products=blocks=true | FileCheck %s --check-prefix=BLOCK

train.variable parameter @w : tensor<32x16xf32> from #train.fill<1.0> {trainable}
train.variable parameter @v : tensor<16x32xf32> from #train.fill<1.0> {trainable}
train.variable gradient @"w::gradient" of @w : tensor<32x16xf32>
train.variable gradient @"v::gradient" of @v : tensor<16x32xf32>

// Tests a linear layer of leading dimensions and its backward: rows are gradients in e5m2, all else is e4m3, and what lies the other way
// is transposed. With scales of blocks all is e4m3, and parameters alone have squares.
// CHECK-LABEL: func.func @microbatch
// BLOCK-LABEL: func.func @microbatch
// BLOCK-NOT:   e5m2
func.func @microbatch(%x: tensor<2x24x32xbf16>, %dy: tensor<48x16xbf16>, %bias: tensor<16xbf16>) -> (tensor<2x24x16xbf16>, tensor<48x32xbf16>) {
  // CHECK: %[[W:.*]] = train.cast
  %w = train.read @w : tensor<32x16xf32>
  %0 = train.cast %w to bf16 : (tensor<32x16xf32>) -> tensor<32x16xbf16>
  // CHECK-NEXT: %[[X:.*]] = train.reshape %arg0 to [48, 32]
  // CHECK-NEXT: %[[A:.*]], %[[AS:.*]] = train.quantize_fp8 %[[X]] "e4m3" :
  // CHECK-NEXT: %[[B:.*]], %[[BS:.*]] = train.quantize_fp8 %[[W]] "e4m3" transposed :
  // CHECK-NEXT: %[[Y:.*]] = train.fp8_matmul %[[A]] by %[[AS]] "e4m3", %[[B]] by %[[BS]] "e4m3" bias %arg2 : {{.*}} -> tensor<48x16xbf16>
  // CHECK-NEXT: %[[R:.*]] = train.reshape %[[Y]] to [2, 24, 16]
  // BLOCK: %[[A:.*]], %[[AS:.*]] = train.quantize_fp8 %{{.*}} "e4m3" per "1x128" : (tensor<48x32xbf16>) -> (tensor<48x32xui8>, tensor<1x48xf32>)
  // BLOCK-NEXT: %[[B:.*]], %[[BS:.*]] = train.quantize_fp8 %{{.*}} "e4m3" per "128x128" transposed : {{.*}} -> (tensor<16x32xui8>, tensor<1x4xf32>)
  // BLOCK-NEXT: train.fp8_matmul %[[A]] by %[[AS]] "e4m3" per "1x128", %[[B]] by %[[BS]] "e4m3" per "128x128" bias %arg2 :
  %y = train.matmul %x, %0 bias %bias : (tensor<2x24x32xbf16>, tensor<32x16xbf16>, tensor<16xbf16>) -> tensor<2x24x16xbf16>
  // CHECK: %[[DY:.*]] = train.mul
  %one = train.loss_gradient 1.000000e+00 : tensor<bf16>
  %1 = train.mul %dy, %one : (tensor<48x16xbf16>, tensor<bf16>) -> tensor<48x16xbf16>
  // CHECK-NEXT: %[[C:.*]], %[[CS:.*]] = train.quantize_fp8 %[[DY]] "e5m2" :
  // CHECK-NEXT: %[[D:.*]], %[[DS:.*]] = train.quantize_fp8 %[[W]] "e4m3" :
  // CHECK-NEXT: %[[DX:.*]] = train.fp8_matmul %[[C]] by %[[CS]] "e5m2", %[[D]] by %[[DS]] "e4m3" : {{.*}} -> tensor<48x32xbf16>
  // BLOCK: train.quantize_fp8 %{{.*}} "e4m3" per "1x128" : (tensor<48x16xbf16>)
  // BLOCK-NEXT: train.quantize_fp8 %{{.*}} "e4m3" per "128x128" : (tensor<32x16xbf16>) -> (tensor<32x16xui8>, tensor<1x4xf32>)
  %dx = train.matmul %1, %0 transposed : (tensor<48x16xbf16>, tensor<32x16xbf16>) -> tensor<48x32xbf16>
  %2 = train.reshape %x to [48, 32] : (tensor<2x24x32xbf16>) -> tensor<48x32xbf16>
  // CHECK: train.quantize_fp8 %{{.*}} "e4m3" transposed : (tensor<48x32xbf16>) -> (tensor<32x48xui8>, tensor<f32>)
  // CHECK-NEXT: train.quantize_fp8 %[[DY]] "e5m2" transposed : (tensor<48x16xbf16>) -> (tensor<16x48xui8>, tensor<f32>)
  // CHECK-NEXT: %[[DW:.*]] = train.fp8_matmul {{.*}} {wide} : {{.*}} -> tensor<32x16xf32>
  // CHECK-NEXT: train.accumulate %[[DW]] into
  // BLOCK: train.quantize_fp8 %{{.*}} "e4m3" per "1x128" transposed : (tensor<48x32xbf16>) -> (tensor<32x48xui8>, tensor<1x32xf32>)
  // BLOCK-NEXT: train.quantize_fp8 %{{.*}} "e4m3" per "1x128" transposed : (tensor<48x16xbf16>) -> (tensor<16x48xui8>, tensor<1x16xf32>)
  // BLOCK-NEXT: train.fp8_matmul {{.*}} per "1x128", {{.*}} per "1x128" {wide} :
  %dw = train.matmul %2 transposed, %1 {wide} : (tensor<48x32xbf16>, tensor<48x16xbf16>) -> tensor<32x16xf32>
  train.accumulate %dw into @"w::gradient" : tensor<32x16xf32>
  // Of the layer before, whose gradient comes out of a product that has been replaced.
  // CHECK-NEXT: train.quantize_fp8 %arg1 "e4m3" transposed
  // CHECK-NEXT: train.quantize_fp8 %[[DX]] "e5m2" transposed
  // CHECK-NEXT: %[[DV:.*]] = train.fp8_matmul {{.*}} {wide} : {{.*}} -> tensor<16x32xf32>
  // CHECK-NEXT: train.accumulate %[[DV]] into
  %dv = train.matmul %dy transposed, %dx {wide} : (tensor<48x16xbf16>, tensor<48x32xbf16>) -> tensor<16x32xf32>
  train.accumulate %dv into @"v::gradient" : tensor<16x32xf32>
  // CHECK-NEXT: return %[[R]], %[[DX]]
  return %y, %dx : tensor<2x24x16xbf16>, tensor<48x32xbf16>
}
