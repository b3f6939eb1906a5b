// RUN: ds-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{op body has arguments; dist.load reads what others stored}}
dist.fragment @fragment_c1 phase forward stage 0 {
^bb0(%x: tensor<4xf32>):
}

// -----

func.func @outside(%x: tensor<4xf32>) {
  // expected-error @+1 {{'dist.store' op expects parent op 'dist.fragment'}}
  dist.store %x as @x : tensor<4xf32>
  return
}

// -----

// expected-error @+1 {{op of phase forward has no stage and a pipe; it must have a stage alone}}
dist.fragment @fragment_c2_stage phase forward pipe 0 {
}

// -----

// expected-error @+1 {{op of phase update has a stage and no pipe; it must have a pipe alone}}
dist.fragment @fragment_c2_pipe phase update stage 0 {
}

// -----

// expected-error @+1 {{op of phase receive has a stage and a pipe; it must have one of the two}}
dist.fragment @fragment_c2_both phase receive stage 0 pipe 0 for @forward {
}

// -----

// expected-error @+1 {{op stage -1 is negative}}
dist.fragment @fragment_c2_negative phase backward stage -1 {
}

// -----

// expected-error @+1 {{op of phase receive must say for which fragment it is}}
dist.fragment @fragment_c3_none phase receive stage 0 {
}

// -----

dist.fragment @backward phase backward stage 0 {
}
// expected-error @+1 {{op of phase forward is for no other fragment}}
dist.fragment @fragment_c3_phase phase forward stage 0 for @backward {
}

// -----

// expected-error @+1 {{op @forward is not a dist.fragment}}
dist.fragment @fragment_c3_name phase receive stage 0 for @forward {
}

// -----

// expected-note @+1 {{declared here}}
dist.fragment @forward phase forward stage 1 {
}
// expected-error @+1 {{op is for @forward, which receives itself or is of another stage or coordinate}}
dist.fragment @fragment_c3_stage phase receive stage 0 for @forward {
}
