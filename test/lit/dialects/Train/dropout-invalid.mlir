// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @dropout_c1_one(%x: tensor<2xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{ratio must be at least 0 and below 1}}
  %0 = train.dropout %x ratio 1.0 id 0 : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @dropout_c1_nan(%x: tensor<2xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{ratio must be at least 0 and below 1}}
  %0 = train.dropout %x ratio 0x7FF8000000000000 id 0 : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @dropout_c2(%x: tensor<2xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{op_id -1 is negative}}
  %0 = train.dropout %x ratio 0.5 id -1 : (tensor<2xf32>) -> tensor<2xf32>
  return
}
