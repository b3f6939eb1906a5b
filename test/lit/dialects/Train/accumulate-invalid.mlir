// RUN: ds-opt %s --split-input-file --verify-diagnostics

train.variable parameter @w : tensor<2xf32> from #train.fill<0.0>
func.func @accumulate_c1_kind(%x: tensor<2xf32>) {
  // expected-error @+1 {{op @w is a parameter; only gradients and metrics accumulate}}
  train.accumulate %x into @w : tensor<2xf32>
  return
}

// -----

// expected-note @+1 {{declared here}}
train.variable gradient @g : tensor<2xf32>
func.func @accumulate_c1_type(%x: tensor<2xf64>) {
  // expected-error @+1 {{op @g is 'tensor<2xf32>', not 'tensor<2xf64>'}}
  train.accumulate %x into @g : tensor<2xf64>
  return
}

// -----

func.func @accumulate_c1_name(%x: tensor<2xf32>) {
  // expected-error @+1 {{op @g is not a train.variable}}
  train.accumulate %x into @g : tensor<2xf32>
  return
}
