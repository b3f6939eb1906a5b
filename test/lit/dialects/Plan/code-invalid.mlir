// RUN: ds-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{op has 0 blocks of 256 threads; there must be blocks, of 1 to 1024 threads}}
plan.code @none blocks 0 threads 256 "" // code_c1

// -----

// expected-error @+1 {{op has 3 blocks of 1025 threads; there must be blocks, of 1 to 1024 threads}}
plan.code @wide blocks 3 threads 1025 "" // code_c1

// -----

plan.role @main ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %a = plan.buffer "a" in @device bytes 4 scope call category activations slots 1
  plan.routine @forward phase forward stage 0 {
    // expected-error @+1 {{op @missing is not a plan.code}}
    plan.kernel "elementwise" code @missing {} (%a) : [tensor<1xf32>] access [2] at [0] on @compute // kernel_c1
  }
}
