// RUN: ds-opt %s --split-input-file --verify-diagnostics

// expected-note @below {{declared here}}
dist.value @x : tensor<f32> input "x"
dist.fragment @store_c1_input phase forward stage 0 {
  %0 = train.constant dense<1.0> : tensor<f32>
  // expected-error @+1 {{op @x is the graph input "x"; only a feed writes it}}
  dist.store %0 as @x : tensor<f32>
}

// -----

// expected-note @+1 {{declared here}}
dist.value @x : tensor<f64>
dist.fragment @store_c1_type phase forward stage 0 {
  %0 = train.constant dense<1.0> : tensor<f32>
  // expected-error @+1 {{op @x is 'tensor<f64>', not 'tensor<f32>'}}
  dist.store %0 as @x : tensor<f32>
}
