// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @reshape_c1_negative(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{shape [6, -1] has a negative dimension}}
  %0 = train.reshape %x to [6, -1] : (tensor<2x3xf32>) -> tensor<6x1xf32>
  return
}

// -----

func.func @reshape_c1_count(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{cannot reshape 'tensor<2x3xf32>' to [7]: 6 elements are not 7}}
  %0 = train.reshape %x to [7] : (tensor<2x3xf32>) -> tensor<7xf32>
  return
}

// -----

// 2^32 * 2^32 elements are not 0 of them.
func.func @reshape_c1_overflow(%x: tensor<0xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{shape [4294967296, 4294967296] has more elements than an i64 counts}}
  %0 = train.reshape %x to [4294967296, 4294967296] : (tensor<0xf32>) -> tensor<4294967296x4294967296xf32>
  return
}
