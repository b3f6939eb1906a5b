// RUN: ds-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{op on axis 0 leads from 1 to 1; these must be two coordinates of an axis}}
plan.channel @channel_c1 axis 0 from 1 to 1

// -----

plan.role @main ranks [0, 0] {
  plan.arena @device space device
  plan.queue @q kind message
  %0 = plan.buffer "x" in @device bytes 16 scope call category activations slots 1
  plan.routine @message_c1 phase forward stage 0 {
    // expected-error @+1 {{op @c is not a plan.channel}}
    plan.send @c(%0) : [tensor<4xf32>] access [1] at [0] on @q
  }
}
