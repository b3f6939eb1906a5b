// RUN: ds-opt %s | ds-opt | FileCheck %s

// Tests a matrix as it lies and transposed, in both formats.
// CHECK-LABEL: func.func @quantize_fp8_c1
func.func @quantize_fp8_c1(%x: tensor<6x4xbf16>, %y: tensor<6x4xf32>) {
  // CHECK: train.quantize_fp8 %arg0 "e4m3" : (tensor<6x4xbf16>) -> (tensor<6x4xui8>, tensor<f32>)
  %0, %1 = train.quantize_fp8 %x "e4m3" : (tensor<6x4xbf16>) -> (tensor<6x4xui8>, tensor<f32>)
  // CHECK: train.quantize_fp8 %arg1 "e5m2" transposed : (tensor<6x4xf32>) -> (tensor<4x6xui8>, tensor<f32>)
  %2, %3 = train.quantize_fp8 %y "e5m2" transposed : (tensor<6x4xf32>) -> (tensor<4x6xui8>, tensor<f32>)
  return
}

// Tests a product with a bias, and one whose sums are not rounded.
// CHECK-LABEL: func.func @fp8_matmul_c1
func.func @fp8_matmul_c1(%a: tensor<6x4xui8>, %b: tensor<8x4xui8>, %s: tensor<f32>, %bias: tensor<8xbf16>) {
  // CHECK: train.fp8_matmul %arg0 by %arg2 "e4m3", %arg1 by %arg2 "e4m3" bias %arg3 : {{.*}} -> tensor<6x8xbf16>
  %0 = train.fp8_matmul %a by %s "e4m3", %b by %s "e4m3" bias %bias
       : (tensor<6x4xui8>, tensor<f32>, tensor<8x4xui8>, tensor<f32>, tensor<8xbf16>) -> tensor<6x8xbf16>
  // CHECK: train.fp8_matmul %arg0 by %arg2 "e5m2", %arg1 by %arg2 "e4m3" {wide} : {{.*}} -> tensor<6x8xf32>
  %1 = train.fp8_matmul %a by %s "e5m2", %b by %s "e4m3" {wide}
       : (tensor<6x4xui8>, tensor<f32>, tensor<8x4xui8>, tensor<f32>) -> tensor<6x8xf32>
  return
}

// Tests scales of blocks, of which the last ones are smaller: of lines, as they lie and transposed, and of squares.
// CHECK-LABEL: func.func @quantize_fp8_c3
func.func @quantize_fp8_c3(%x: tensor<144x272xbf16>) {
  // CHECK: train.quantize_fp8 %arg0 "e4m3" per "1x128" : (tensor<144x272xbf16>) -> (tensor<144x272xui8>, tensor<3x144xf32>)
  %0, %1 = train.quantize_fp8 %x "e4m3" per "1x128" : (tensor<144x272xbf16>) -> (tensor<144x272xui8>, tensor<3x144xf32>)
  // CHECK: train.quantize_fp8 %arg0 "e4m3" per "1x128" transposed : (tensor<144x272xbf16>) -> (tensor<272x144xui8>, tensor<2x272xf32>)
  %2, %3 = train.quantize_fp8 %x "e4m3" per "1x128" transposed : (tensor<144x272xbf16>) -> (tensor<272x144xui8>, tensor<2x272xf32>)
  // CHECK: train.quantize_fp8 %arg0 "e4m3" per "128x128" : (tensor<144x272xbf16>) -> (tensor<144x272xui8>, tensor<2x4xf32>)
  %4, %5 = train.quantize_fp8 %x "e4m3" per "128x128" : (tensor<144x272xbf16>) -> (tensor<144x272xui8>, tensor<2x4xf32>)
  // CHECK: train.quantize_fp8 %arg0 "e4m3" per "128x128" transposed : (tensor<144x272xbf16>) -> (tensor<272x144xui8>, tensor<3x4xf32>)
  %6, %7 = train.quantize_fp8 %x "e4m3" per "128x128" transposed : (tensor<144x272xbf16>) -> (tensor<272x144xui8>, tensor<3x4xf32>)
  return
}

// Tests the pairs of blocks that a product may have.
// CHECK-LABEL: func.func @fp8_matmul_c5
func.func @fp8_matmul_c5(%a: tensor<48x144xui8>, %b: tensor<32x144xui8>, %s: tensor<2x48xf32>, %t: tensor<2x32xf32>, %u: tensor<1x4xf32>) {
  // CHECK: train.fp8_matmul %arg0 by %arg2 "e4m3" per "1x128", %arg1 by %arg3 "e4m3" per "1x128" {wide} :
  %0 = train.fp8_matmul %a by %s "e4m3" per "1x128", %b by %t "e4m3" per "1x128" {wide}
       : (tensor<48x144xui8>, tensor<2x48xf32>, tensor<32x144xui8>, tensor<2x32xf32>) -> tensor<48x32xf32>
  // CHECK: train.fp8_matmul %arg0 by %arg2 "e4m3" per "1x128", %arg1 by %arg4 "e4m3" per "128x128" :
  %1 = train.fp8_matmul %a by %s "e4m3" per "1x128", %b by %u "e4m3" per "128x128"
       : (tensor<48x144xui8>, tensor<2x48xf32>, tensor<32x144xui8>, tensor<1x4xf32>) -> tensor<48x32xbf16>
  // CHECK: train.fp8_matmul %arg0 by %arg4 "e4m3" per "128x128", %arg1 by %arg3 "e4m3" per "1x128" :
  %2 = train.fp8_matmul %a by %u "e4m3" per "128x128", %b by %t "e4m3" per "1x128"
       : (tensor<48x144xui8>, tensor<1x4xf32>, tensor<32x144xui8>, tensor<2x32xf32>) -> tensor<48x32xbf16>
  return
}
