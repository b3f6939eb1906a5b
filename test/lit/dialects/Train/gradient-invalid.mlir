// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @gradient_c1_type(%y: tensor<f32>, %x: tensor<3xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{must have a result for each of its 1 variables, of its type}}
  %0 = train.gradient %y, %x : (tensor<f32>, tensor<3xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @gradient_c1_count(%y: tensor<f32>, %x: tensor<3xf32>) -> tensor<3xf32> {
  // expected-error @+1 {{must have a result for each of its 2 variables, of its type}}
  %0 = train.gradient %y, %x, %x : (tensor<f32>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
