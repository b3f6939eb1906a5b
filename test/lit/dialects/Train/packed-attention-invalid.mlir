// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @packed_attention_c1(%x: tensor<2x3x7x8xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{qkv 'tensor<2x3x7x8xf32>' is not [batch, rows, heads + 2 * groups, depth] of 4 heads}}
  %0:2 = train.packed_attention %x heads 4 scale 1.0 : (tensor<2x3x7x8xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @packed_attention_c1_no_groups(%x: tensor<2x3x4x8xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{qkv 'tensor<2x3x4x8xf32>' is not [batch, rows, heads + 2 * groups, depth] of 4 heads}}
  %0:2 = train.packed_attention %x heads 4 scale 1.0 : (tensor<2x3x4x8xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @packed_attention_c2(%x: tensor<2x3x7x8xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{3 heads of query are not a multiple of 2 groups of key and value}}
  %0:2 = train.packed_attention %x heads 3 scale 1.0 : (tensor<2x3x7x8xf32>) -> (tensor<2x3x3x8xf32>, tensor<2x3x3xf32>)
  return
}

// -----

func.func @packed_attention_c3(%x: tensor<2x3x8x8xf32>, %m: tensor<5x3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{mask 'tensor<5x3xf32>' is not of i1 or 'f32' and does not broadcast to [2, 4, 3, 3]}}
  %0:2 = train.packed_attention %x heads 4 mask %m scale 1.0 : (tensor<2x3x8x8xf32>, tensor<5x3xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @packed_attention_grad_c1(%x: tensor<2x3x8x8xf32>, %y: tensor<2x3x4x8xf32>, %l: tensor<2x4x3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{gradient 'tensor<2x3x8x8xf32>', result 'tensor<2x3x4x8xf32>' and lse 'tensor<2x4x3xf32>' must be}}
  %0 = train.packed_attention_grad %x, %x heads 4 of %y, %l scale 1.0 : (tensor<2x3x8x8xf32>, tensor<2x3x8x8xf32>, tensor<2x3x4x8xf32>, tensor<2x4x3xf32>) -> tensor<2x3x8x8xf32>
  return
}
