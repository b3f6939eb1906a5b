// RUN: ds-opt %s --split-input-file --verify-diagnostics

// Members stand in a role.
// expected-error @+1 {{'plan.queue' op expects parent op 'plan.role'}}
plan.queue @compute kind compute

// -----

plan.role @main ranks [0, 0] {
  // expected-note @+1 {{see existing symbol definition here}}
  plan.queue @compute kind compute
  // expected-error @+1 {{redefinition of symbol named 'compute'}}
  plan.event @compute
}
