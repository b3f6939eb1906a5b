// RUN: ds-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{op axes [1, 0] are not ascending indices}}
plan.communicator @communicator_c1 axes [1, 0]

// -----

plan.communicator @all axes [0]
plan.role @r ranks [0, 1] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %a = plan.buffer "a" in @device bytes 64 scope call category communication slots 1
  plan.routine @collective_c1 phase forward stage 0 {
    // expected-error @+1 {{op has 2 buffers; it must name a communicator and have 3 buffers a part}}
    plan.collective all_reduce (%a, %a) : [tensor<16xf32>, tensor<16xf32>] access [1, 2] at [0, 0] over @all on @compute
  }
}

// -----

plan.role @r ranks [0, 1] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %a = plan.buffer "a" in @device bytes 64 scope call category communication slots 1
  plan.routine @command_c4_strides phase forward stage 0 {
    // expected-error @+1 {{op has rank strides [32] for 1 buffers and names no communicator}}
    plan.fill (%a) : [tensor<8xf32>] access [2] at [0] stride [32] on @compute
  }
}

// -----

plan.role @r ranks [0, 1] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %a = plan.buffer "a" in @device bytes 64 scope call category communication slots 1
  plan.routine @command_c4_communicator phase forward stage 0 {
    // expected-error @+1 {{op @none is not a plan.communicator}}
    plan.fill (%a) : [tensor<8xf32>] access [2] at [0] stride [32] over @none on @compute
  }
}

// -----

plan.communicator @all axes [0]
plan.role @r ranks [0, 1] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %a = plan.buffer "a" in @device bytes 64 scope call category communication slots 1
  plan.routine @command_c3_second_rank phase forward stage 0 {
    // expected-error @+1 {{op operand 0 takes 68 bytes at 0 of a buffer of 64}}
    plan.fill (%a) : [tensor<8xf32>] access [2] at [0] stride [36] over @all on @compute
  }
}
