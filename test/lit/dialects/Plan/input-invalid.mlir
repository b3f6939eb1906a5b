// RUN: ds-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{op must be a static tensor, not 'tensor<?x8xf32>'}}
plan.input "input_c1" : tensor<?x8xf32>

// -----

// expected-error @+1 {{op tokens "previous" is none of same, next}}
plan.input "input_c2" : tensor<4x8xi64> tokens "previous"

// -----

// expected-error @+1 {{op limit is -1; it must not be negative}}
plan.input "input_c3" : tensor<4x8xi64> limit -1

// -----

// expected-error @+1 {{op ignores -100, but has no limit that would refuse it}}
plan.input "input_c3" : tensor<4x8xi64> ignored -100
