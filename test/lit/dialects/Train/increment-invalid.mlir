// RUN: ds-opt %s --split-input-file --verify-diagnostics

// expected-note @+1 {{declared here}}
train.variable optimizer @step : tensor<i32> from #train.fill<0.0>
func.func @increment_c1_type() {
  // expected-error @+1 {{op @step is 'tensor<i32>', not 'tensor<i64>'}}
  train.increment @step
  return
}

// -----

func.func @increment_c1_name() {
  // expected-error @+1 {{op @step is not a train.variable}}
  train.increment @step
  return
}
