// RUN: ds-opt %s --split-input-file --verify-diagnostics --ds-compile-elementwise

plan.role @main ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %a = plan.buffer "a" in @device bytes 256 scope call category activations slots 1
  plan.routine @forward phase forward stage 0 {
    // expected-error @+1 {{op is compiled for where its operands lie, but operand 0 has no offset yet; run ds-assign-offsets before}}
    plan.kernel "elementwise" {constants = array<f64>, program = array<i64: 50, 7, 0, -1, -1>, results = array<i64: 1>} (%a, %a) :
        [tensor<8xf32>, tensor<8xf32>] access [1, 2] at [0, 0] on @compute
  }
}

// -----

plan.role @main ranks [0, 0] {
  plan.arena @device space device bytes 256 peak 256
  plan.queue @compute kind compute
  %a = plan.buffer "a" in @device bytes 256 scope call category activations slots 1 at 0
  plan.routine @forward phase forward stage 0 {
    // expected-error @+1 {{op cannot be compiled: kernel 'elementwise': instruction 0 has the unknown opcode 7}}
    plan.kernel "elementwise" {constants = array<f64>, program = array<i64: 7, 7, 0, -1, -1>, results = array<i64: 1>} (%a, %a) :
        [tensor<8xf32>, tensor<8xf32>] access [1, 2] at [0, 0] on @compute
  }
}
