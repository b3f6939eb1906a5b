// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @clip_factor_c1(%norm: tensor<f64>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{max_norm must be above 0}}
  %0 = train.clip_factor %norm max 0.0 : (tensor<f64>) -> tensor<f64>
  return
}

// -----

func.func @single_precision(%norm: tensor<f32>) {
  // expected-error @+1 {{op operand #0 must be 0D tensor of 64-bit float values}}
  %0 = train.clip_factor %norm max 1.0 : (tensor<f32>) -> tensor<f64>
  return
}
