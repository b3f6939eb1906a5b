// RUN: ds-opt %s --split-input-file --verify-diagnostics

plan.role @main ranks [0, 0] {
  plan.program "call_c1" {
    // expected-error @+1 {{op @forward is not a plan.routine}}
    plan.call @forward microbatch 0
  }
}
