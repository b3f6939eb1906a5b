plan.role @main ranks [0, 0] {
  plan.arena @device space device bytes 1600 peak 1600
  plan.queue @compute kind compute
  %big = plan.buffer "big" in @device bytes 1024 scope call category activations slots 1 at 0 lives [0, 0, 0, 0, 2]
  %other = plan.buffer "other" in @device bytes 512 scope call category activations slots 1 at 1024 lives [0, 0, 1, 0, 3]
  %sum = plan.buffer "sum" in @device bytes 64 scope call category activations slots 1 at 1536 lives [0, 0, 2, 0, 3]
  plan.routine @forward phase forward stage 0 {
    // EXAMPLE
  }
  plan.program "step" {
    plan.call @forward microbatch 0
  }
}
