// RUN: ds-opt %s --split-input-file --verify-diagnostics

dist.value @x : tensor<4xf32>
dist.fragment @feed_c1_input {
  // expected-error @+1 {{op @x is no graph input}}
  dist.feed @x
}

// -----

dist.fragment @feed_c1_name {
  // expected-error @+1 {{op @x is not a dist.value}}
  dist.feed @x
}
