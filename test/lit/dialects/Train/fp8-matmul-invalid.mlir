// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @quantize_fp8_c1(%x: tensor<6xbf16>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{input 'tensor<6xbf16>' must be a matrix}}
  %0, %1 = train.quantize_fp8 %x "e4m3" : (tensor<6xbf16>) -> (tensor<6xui8>, tensor<f32>)
  return
}

// -----

func.func @quantize_fp8_c2(%x: tensor<6x4xbf16>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{format "e3m4" is none of "e4m3", "e5m2"}}
  %0, %1 = train.quantize_fp8 %x "e3m4" : (tensor<6x4xbf16>) -> (tensor<6x4xui8>, tensor<f32>)
  return
}

// -----

func.func @fp8_matmul_c1(%a: tensor<6x4xui8>, %b: tensor<8x5xui8>, %s: tensor<f32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{codes 'tensor<6x4xui8>' and 'tensor<8x5xui8>' must be matrices of as many columns}}
  %0 = train.fp8_matmul %a by %s "e4m3", %b by %s "e4m3" : (tensor<6x4xui8>, tensor<f32>, tensor<8x5xui8>, tensor<f32>) -> tensor<6x8xbf16>
  return
}

// -----

func.func @fp8_matmul_c2(%a: tensor<6x4xui8>, %b: tensor<8x4xui8>, %s: tensor<f32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{formats "e5m2" and "e5m2" must be "e4m3" or "e5m2", and one "e4m3"}}
  %0 = train.fp8_matmul %a by %s "e5m2", %b by %s "e5m2" : (tensor<6x4xui8>, tensor<f32>, tensor<8x4xui8>, tensor<f32>) -> tensor<6x8xbf16>
  return
}

// -----

func.func @fp8_matmul_c3(%a: tensor<6x4xui8>, %b: tensor<8x4xui8>, %s: tensor<f32>, %bias: tensor<6xbf16>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{bias 'tensor<6xbf16>' must have the 8 columns of the product}}
  %0 = train.fp8_matmul %a by %s "e4m3", %b by %s "e4m3" bias %bias : (tensor<6x4xui8>, tensor<f32>, tensor<8x4xui8>, tensor<f32>, tensor<6xbf16>) -> tensor<6x8xbf16>
  return
}

// -----

func.func @fp8_matmul_c4(%a: tensor<6x4xui8>, %b: tensor<8x4xui8>, %s: tensor<f32>, %bias: tensor<8xbf16>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{a product that is left in f32 takes no bias}}
  %0 = train.fp8_matmul %a by %s "e4m3", %b by %s "e4m3" bias %bias {wide} : (tensor<6x4xui8>, tensor<f32>, tensor<8x4xui8>, tensor<f32>, tensor<8xbf16>) -> tensor<6x8xf32>
  return
}

// -----

func.func @quantize_fp8_c3(%x: tensor<6x4xbf16>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{block "1x32" is none of "1x128", "128x128"}}
  %0, %1 = train.quantize_fp8 %x "e4m3" per "1x32" : (tensor<6x4xbf16>) -> (tensor<6x4xui8>, tensor<1x6xf32>)
  return
}

// -----

func.func @fp8_matmul_c5(%a: tensor<6x4xui8>, %b: tensor<8x4xui8>, %s: tensor<1x4xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{blocks must be "1x128" or "128x128", of a and b or of neither, and one "1x128"}}
  %0 = train.fp8_matmul %a by %s "e4m3" per "128x128", %b by %s "e4m3" per "128x128" : (tensor<6x4xui8>, tensor<1x4xf32>, tensor<8x4xui8>, tensor<1x4xf32>) -> tensor<6x8xbf16>
  return
}

// -----

func.func @fp8_matmul_c6(%a: tensor<6x4xui8>, %b: tensor<8x4xui8>, %s: tensor<1x6xf32>, %t: tensor<1x8xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{the scale of b must have shape [1, 4], not 'tensor<1x8xf32>'}}
  %0 = train.fp8_matmul %a by %s "e4m3" per "1x128", %b by %t "e4m3" per "128x128" : (tensor<6x4xui8>, tensor<1x6xf32>, tensor<8x4xui8>, tensor<1x8xf32>) -> tensor<6x8xbf16>
  return
}
