// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @attention_c1(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x7xf32>, %v: tensor<2x2x5x6xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{query 'tensor<2x4x3x8xf32>', key 'tensor<2x2x5x7xf32>' and value 'tensor<2x2x5x6xf32>' are not [batch, heads}}
  %0:2 = train.attention %q, %k, %v scale 1.0 : (tensor<2x4x3x8xf32>, tensor<2x2x5x7xf32>, tensor<2x2x5x6xf32>) -> (tensor<2x4x3x6xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @attention_c2(%q: tensor<2x3x3x8xf32>, %k: tensor<2x2x5x8xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{3 heads of query are not a multiple of 2 groups of key and value}}
  %0:2 = train.attention %q, %k, %k scale 1.0 : (tensor<2x3x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>) -> (tensor<2x3x3x8xf32>, tensor<2x3x3xf32>)
  return
}

// -----

func.func @attention_c3(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %m: tensor<5x3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{mask 'tensor<5x3xf32>' is not of i1 or 'f32' and does not broadcast to [2, 4, 3, 5]}}
  %0:2 = train.attention %q, %k, %k mask %m scale 1.0 : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>, tensor<5x3xf32>) -> (tensor<2x4x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @attention_grad_c1(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %l: tensor<2x4x3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{gradient 'tensor<2x2x5x8xf32>', result 'tensor<2x4x3x8xf32>' and lse 'tensor<2x4x3xf32>' must be}}
  %0:3 = train.attention_grad %k, %q, %k, %k of %q, %l scale 1.0 : (tensor<2x2x5x8xf32>, tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>, tensor<2x4x3x8xf32>, tensor<2x4x3xf32>) -> (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>)
  return
}
