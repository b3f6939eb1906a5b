// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @read_c1_name() {
  // expected-error @+1 {{op @w is not a train.variable}}
  %0 = train.read @w : tensor<2xf32>
  return
}

// -----

func.func @read_c1_function() {
  // expected-error @+1 {{op @read_c1_function is not a train.variable}}
  %0 = train.read @read_c1_function : tensor<2xf32>
  return
}

// -----

// expected-note @+1 {{declared here}}
train.variable buffer @w : tensor<2xf32> from #train.fill<0.0>
func.func @read_c1_type() {
  // expected-error @+1 {{op @w is 'tensor<2xf32>', not 'tensor<3xf32>'}}
  %0 = train.read @w : tensor<3xf32>
  return
}
