// RUN: ds-opt %s --split-input-file --verify-diagnostics

dist.role @main ranks [0, 0] {
  dist.program @call_c1 {
    // expected-error @+1 {{op @forward is not a dist.fragment}}
    dist.call @forward microbatch 0
  }
}

// -----

dist.fragment @forward phase forward stage 0 {
}
dist.role @main ranks [0, 0] {
  dist.program @call_c2 {
    // expected-error @+1 {{op microbatch -1 is negative}}
    dist.call @forward microbatch -1
  }
}
