// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @uniform_c1_negative() {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{shape [2, -1] has a negative dimension or more elements than an i64 counts}}
  %0 = train.uniform [2, -1] of f32 id 0 : tensor<2xf32>
  return
}

// -----

func.func @uniform_c1_large() {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{has a negative dimension or more elements than an i64 counts}}
  %0 = train.uniform [4294967296, 4294967296] of f32 id 0 : tensor<2xf32>
  return
}

// -----

func.func @uniform_c2() {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{element_type 'bf16' is neither f32 nor f64}}
  %0 = train.uniform [2] of bf16 id 0 : tensor<2xbf16>
  return
}

// -----

func.func @uniform_c3() {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{op_id -1 is negative}}
  %0 = train.uniform [2] of f32 id -1 : tensor<2xf32>
  return
}
