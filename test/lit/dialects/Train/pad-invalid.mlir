// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @pad_c1_entries(%x: tensor<3x3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{'high' has 1 entries for 'tensor<3x3xf32>'}}
  %0 = train.pad %x low [0, 0] high [1] interior [0, 0] with 0.0 : (tensor<3x3xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @pad_c1_negative(%x: tensor<3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{dimension 0: low -1, high 0, interior 0 must not be negative}}
  %0 = train.pad %x low [-1] high [0] interior [0] with 0.0 : (tensor<3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @pad_c1_overflow(%x: tensor<3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{dimension 0: low 9223372036854775807, high 9223372036854775807, interior 0 make it larger than an i64 counts}}
  %0 = train.pad %x low [9223372036854775807] high [9223372036854775807] interior [0] with 0.0 : (tensor<3xf32>) -> tensor<1xf32>
  return
}
