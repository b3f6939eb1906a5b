// RUN: ds-opt %s --split-input-file --verify-diagnostics

// expected-note @+1 {{declared here}}
train.variable buffer @count : tensor<i64> from #train.fill<0.0>
func.func @store_c1_type(%x: tensor<i32>) {
  // expected-error @+1 {{op @count is 'tensor<i64>', not 'tensor<i32>'}}
  train.store %x into @count : tensor<i32>
  return
}

// -----

func.func @store_c1_name(%x: tensor<i32>) {
  // expected-error @+1 {{op @count is not a train.variable}}
  train.store %x into @count : tensor<i32>
  return
}
