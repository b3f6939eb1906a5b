// RUN: ds-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{'dist.program' op expects parent op 'dist.role'}}
dist.program @step {
}

// -----

dist.role @main ranks [0, 0] {
  // expected-note @+1 {{see existing symbol definition here}}
  dist.program @step {
  }
  // expected-error @+1 {{redefinition of symbol named 'step'}}
  dist.program @step {
  }
}
