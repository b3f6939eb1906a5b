// RUN: ds-opt %s --split-input-file --verify-diagnostics

// Tests tail_c1: what says whether the tail is run is a float scalar that lies in the buffer.
plan.role @r ranks [0, 0] {
  plan.arena @device space device
  %f = plan.buffer "f" in @device bytes 4 scope step category activations slots 1
  plan.routine @update phase update {
  }
  plan.program "step" {
    plan.call @update microbatch 0
    // expected-error@below {{must read a float scalar in a plan.buffer, not 'tensor<f64>'}}
    plan.tail unless_one %f : tensor<f64>
    plan.call @update microbatch 0
  }
}

// -----

// Tests tail_c2: there are calls before it and behind it.
plan.role @r ranks [0, 0] {
  plan.arena @device space device
  %f = plan.buffer "f" in @device bytes 8 scope step category activations slots 1
  plan.routine @update phase update {
  }
  plan.program "step" {
    plan.call @update microbatch 0
    // expected-error@below {{must be the only one of program "step", with calls before it and behind it}}
    plan.tail unless_one %f : tensor<f64>
  }
}

// -----

// Tests buffer_c5: what is next outlives a step, in a file.
plan.role @r ranks [0, 0] {
  plan.arena @host space host
  // expected-error@below {{in @host of scope plan is next; only what outlives a step in space nvme is}}
  %m = plan.buffer "m" in @host bytes 8 scope plan category optimizer slots 1 of @m next
}
