plan.role @main ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  plan.routine @forward phase forward stage 0 {
  }
  // EXAMPLE
}
