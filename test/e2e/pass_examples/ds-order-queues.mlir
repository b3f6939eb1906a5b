plan.communicator @data_ranks axes [0]
plan.role @main ranks [0, 3] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %x = plan.buffer "x" in @device bytes 16 scope call category activations slots 1
  %y = plan.buffer "y" in @device bytes 16 scope call category activations slots 1
  %z = plan.buffer "z" in @device bytes 16 scope call category activations slots 1
  %own = plan.buffer "own" in @device bytes 16 scope step category weights slots 1
  %all = plan.buffer "all" in @device bytes 64 scope call category communication slots 1
  plan.routine @forward phase forward stage 0 {
    // EXAMPLE
  }
  plan.program "step" {
    plan.call @forward microbatch 0
  }
}
