// EXAMPLE
  plan.program "step" {
    plan.call @forward microbatch 0
  }
}
