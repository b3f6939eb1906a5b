// RUN: ds-opt %s --split-input-file --verify-diagnostics

plan.role @buffer_c1 ranks [0, 0] {
  // expected-error @+1 {{op @device is not a plan.arena}}
  %b = plan.buffer "b" in @device bytes 4 scope call category activations slots 1
}

// -----

plan.role @buffer_c2_slots ranks [0, 0] {
  plan.arena @device space device
  // expected-error @+1 {{op of scope call has 4 bytes in 2 slots; only scope slot has several}}
  %b = plan.buffer "b" in @device bytes 4 scope call category activations slots 2
}

// -----

plan.role @buffer_c2_none ranks [0, 0] {
  plan.arena @device space device
  // expected-error @+1 {{op of scope slot has 4 bytes in 0 slots}}
  %b = plan.buffer "b" in @device bytes 4 scope slot category activations slots 0
}

// -----

plan.role @buffer_c2_bytes ranks [0, 0] {
  plan.arena @device space device
  // expected-error @+1 {{op of scope call has -4 bytes in 1 slots}}
  %b = plan.buffer "b" in @device bytes -4 scope call category activations slots 1
}

// -----

plan.role @buffer_c3_none ranks [0, 0] {
  plan.arena @device space device
  // expected-error @+1 {{op of scope plan names no variable}}
  %b = plan.buffer "b" in @device bytes 4 scope plan category weights slots 1
}

// -----

plan.role @buffer_c3_some ranks [0, 0] {
  plan.arena @device space device
  // expected-error @+1 {{op of scope call names a variable}}
  %b = plan.buffer "b" in @device bytes 4 scope call category weights slots 1 of @w
}

// -----

plan.role @buffer_c4 ranks [0, 0] {
  plan.arena @device space device
  // expected-error @+1 {{op has 3 slots, an offset and 1 offsets of further slots}}
  %b = plan.buffer "b" in @device bytes 64 scope slot category activations slots 3 at 0 then [64]
}

// -----

plan.role @buffer_c4_no_offset ranks [0, 0] {
  plan.arena @device space device
  // expected-error @+1 {{op has 2 slots, no offset and 1 offsets of further slots}}
  %b = plan.buffer "b" in @device bytes 64 scope slot category activations slots 2 then [64]
}

// -----

// Tests buffer_c6: what stays is optimizer state.
plan.role @r ranks [0, 0] {
  plan.arena @device space device
  // expected-error@below {{of scope plan and category weights stays; only optimizer state of scope plan does}}
  %w = plan.buffer "w" in @device bytes 8 scope plan category weights slots 1 of @w stays
}
