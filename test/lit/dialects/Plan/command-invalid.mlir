// RUN: ds-opt %s --split-input-file --verify-diagnostics

plan.role @main ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %b = plan.buffer "b" in @device bytes 4 scope call category activations slots 1
  plan.routine @command_c1_operands phase forward stage 0 {
    // expected-error @+1 {{op has 1 buffers, 2 accesses, 1 types, 1 offsets, 0 waits, 0 delays}}
    plan.fill (%b) : [tensor<f32>] access [2, 2] at [0] on @compute
  }
}

// -----

plan.role @main ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  plan.event @e
  %b = plan.buffer "b" in @device bytes 4 scope call category activations slots 1
  plan.routine @command_c1_delays phase forward stage 0 {
    // expected-error @+1 {{op has 1 buffers, 1 accesses, 1 types, 1 offsets, 1 waits, 2 delays}}
    plan.feed "x" (%b) : [tensor<f32>] access [2] at [0] on @compute wait [@e] [0, 1]
  }
}

// -----

plan.role @main ranks [0, 0] {
  plan.routine @command_c2_queue phase forward stage 0 {
    // expected-error @+1 {{op @compute is not a plan.queue}}
    plan.kernel "increment" {} () : [] access [] at [] on @compute
  }
}

// -----

plan.role @main ranks [0, 0] {
  plan.queue @compute kind compute
  plan.routine @command_c2_wait phase forward stage 0 {
    // expected-error @+1 {{op @compute is not a plan.event}}
    plan.kernel "increment" {} () : [] access [] at [] on @compute wait [@compute] [0]
  }
}

// -----

plan.role @main ranks [0, 0] {
  plan.queue @compute kind compute
  plan.routine @command_c2_signal phase forward stage 0 {
    // expected-error @+1 {{op "done" is not a plan.event}}
    plan.kernel "increment" {} () : [] access [] at [] on @compute signal ["done"]
  }
}

// -----

plan.role @main ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %b = plan.buffer "b" in @device bytes 8 scope call category activations slots 1
  plan.routine @command_c3_end phase forward stage 0 {
    // expected-error @+1 {{op operand 0 takes 8 bytes at 4 of a buffer of 8}}
    plan.fill (%b) : [tensor<2xf32>] access [2] at [4] on @compute
  }
}

// -----

plan.role @main ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %b = plan.buffer "b" in @device bytes 8 scope call category activations slots 1
  plan.routine @command_c3_huge phase forward stage 0 {
    // expected-error @+1 {{op operand 0 takes 8 bytes at 9223372036854775807 of a buffer of 8}}
    plan.fill (%b) : [tensor<2xf32>] access [2] at [9223372036854775807] on @compute
  }
}

// -----

plan.role @main ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %b = plan.buffer "b" in @device bytes 8 scope call category activations slots 1
  plan.routine @command_c3_type phase forward stage 0 {
    // expected-error @+1 {{op operand 0 must be a static tensor in a plan.buffer, not tensor<?xf32>}}
    plan.fill (%b) : [tensor<?xf32>] access [2] at [0] on @compute
  }
}

// -----

plan.role @main ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %b = plan.buffer "b" in @device bytes 8 scope call category activations slots 1
  plan.routine @command_c3_scalar phase forward stage 0 {
    // expected-error @+1 {{op operand 0 must be a static tensor in a plan.buffer, not f32}}
    plan.fill (%b) : [f32] access [2] at [0] on @compute
  }
}

// -----

plan.role @main ranks [0, 0] {
  // expected-error @+1 {{op holds 'train.constant', which is no command}}
  plan.routine @routine_c1 phase forward stage 0 {
    %0 = train.constant dense<1.0> : tensor<f32>
  }
}

// -----

plan.role @main ranks [0, 0] {
  // expected-error @+1 {{op of phase forward must say of which stage it is}}
  plan.routine @routine_c2_none phase forward {
  }
}

// -----

plan.role @main ranks [0, 0] {
  // expected-error @+1 {{op of phase update serves all stages of its role and has none}}
  plan.routine @routine_c2_update phase update stage 0 {
  }
}

// -----

plan.role @main ranks [0, 0] {
  // expected-error @+1 {{op stage -1 is negative}}
  plan.routine @routine_c2_negative phase feed stage -1 {
  }
}

// -----

plan.role @main ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %b = plan.buffer "b" in @device bytes 8 scope call category activations slots 1
  plan.routine @copy_c1 phase forward stage 0 {
    // expected-error @+1 {{op has 2 buffers, accesses [2, 2] and types [tensor<2xf32>, tensor<2xf32>]; it reads the first of two and writes the second, of one type}}
    plan.copy (%b, %b) : [tensor<2xf32>, tensor<2xf32>] access [2, 2] at [0, 0] on @compute
  }
}
