plan.role @main ranks [0, 3] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %x = plan.buffer "x" in @device bytes 16 scope slot category inputs slots 1
  %y = plan.buffer "y" in @device bytes 16 scope call category activations slots 1
  %h = plan.buffer "h" in @device bytes 16 scope slot category activations slots 1
  plan.routine @forward phase forward stage 0 {
    // EXAMPLE
  }
  plan.program "step" {
    plan.call @forward microbatch 0
  }
}
