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
