// RUN: ds-opt %s --split-input-file --verify-diagnostics

dist.fragment @load_c1_name phase forward stage 0 {
  // expected-error @+1 {{op @x is not a dist.value}}
  %x = dist.load @x : tensor<4xf32>
}

// -----

// expected-note @+1 {{declared here}}
dist.value @x : tensor<4xf32>
dist.fragment @load_c1_type phase forward stage 0 {
  // expected-error @+1 {{op @x is 'tensor<4xf32>', not 'tensor<5xf32>'}}
  %x = dist.load @x : tensor<5xf32>
}
