// RUN: ds-opt %s --split-input-file --verify-diagnostics

train.variable parameter @w : tensor<3xf32> from #train.fill<0.0> {trainable}
func.func @update_average_c1_kind(%x: tensor<3xf32>) {
  // expected-error @+1 {{@w is a parameter; only buffers hold running averages}}
  train.update_average %x into @w momentum 0.9 correction 1.0 : tensor<3xf32>
  return
}

// -----

// expected-note @+1 {{declared here}}
train.variable buffer @b : tensor<4xf32> from #train.fill<0.0>
func.func @update_average_c1_type(%x: tensor<3xf32>) {
  // expected-error @+1 {{@b is 'tensor<4xf32>', not 'tensor<3xf32>'}}
  train.update_average %x into @b momentum 0.9 correction 1.0 : tensor<3xf32>
  return
}

// -----

train.variable buffer @b : tensor<3xf32> from #train.fill<0.0>
func.func @update_average_c2(%x: tensor<3xf32>) {
  // expected-error @+1 {{momentum 1.500000e+00 must be at least 0 and at most 1}}
  train.update_average %x into @b momentum 1.5 correction 1.0 : tensor<3xf32>
  return
}
