// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @broadcast_c1_other(%x: tensor<2xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{'tensor<2xf32>' does not broadcast to [3]}}
  %0 = train.broadcast %x to [3] : (tensor<2xf32>) -> tensor<3xf32>
  return
}

// -----

// The shape broadcasts to the input's here, not the other way round.
func.func @broadcast_c1_narrower(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{'tensor<2x3xf32>' does not broadcast to [3]}}
  %0 = train.broadcast %x to [3] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @broadcast_c1_negative(%x: tensor<1xf32>) {
  // expected-error @+2 {{op failed to infer returned types}}
  // expected-error @+1 {{'tensor<1xf32>' does not broadcast to [-1]}}
  %0 = train.broadcast %x to [-1] : (tensor<1xf32>) -> tensor<1xf32>
  return
}
