plan.role @main ranks [0, 0] {
  plan.arena @device space device bytes 512 peak 512
  plan.queue @compute kind compute
  %a = plan.buffer "a" in @device bytes 256 scope call category activations slots 1 at 0
  %b = plan.buffer "b" in @device bytes 256 scope call category activations slots 1 at 256
  plan.routine @forward phase forward stage 0 {
    // EXAMPLE
  }
}
