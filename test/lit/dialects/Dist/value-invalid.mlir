// RUN: ds-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{op must be a static tensor, not 'tensor<?xf32>'}}
dist.value @value_c1 : tensor<?xf32>
