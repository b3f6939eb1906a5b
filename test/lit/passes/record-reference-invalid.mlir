// RUN: ds-opt %s --ds-record-reference --split-input-file --verify-diagnostics

// expected-error @+1 {{has a module @reference already; it is recorded once}}
module {
  module @reference {
  }
}

// -----

// expected-error @+1 {{must have one block; see ds-verify-train-form}}
func.func private @microbatch()
