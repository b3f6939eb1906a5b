// RUN: ds-opt %s --split-input-file --verify-diagnostics

// expected-note @below {{declared here}}
dist.value @x : tensor<4xf32>
dist.fragment @feed_c1_input phase forward stage 0 {
  // expected-error @+1 {{op @x is no graph input}}
  dist.feed @x
}

// -----

dist.fragment @feed_c1_name phase forward stage 0 {
  // expected-error @+1 {{op @x is not a dist.value}}
  dist.feed @x
}
