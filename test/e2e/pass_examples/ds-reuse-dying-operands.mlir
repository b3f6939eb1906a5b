#add = {constants = array<f64>, program = array<i64: 10, 0, 0, 1, -1>, results = array<i64: 2>}
#same = {perm = array<i64: 0>}
plan.role @main ranks [0, 3] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %x = plan.buffer "x" in @device bytes 16 scope call category activations slots 1
  %y = plan.buffer "y" in @device bytes 16 scope call category activations slots 1
  %z = plan.buffer "z" in @device bytes 16 scope call category activations slots 1
  %w = plan.buffer "w" in @device bytes 16 scope call category activations slots 1
  plan.routine @forward phase forward stage 0 {
    // EXAMPLE
  }
  plan.program "step" {
    plan.call @forward microbatch 0
  }
}
