// RUN: ds-opt %s --split-input-file --verify-diagnostics

plan.role @metric_c1_rank ranks [0, 0] {
  plan.arena @device space device
  %b = plan.buffer "b" in @device bytes 8 scope step category optimizer slots 1
  plan.program "step" {
    // expected-error @+1 {{op "loss" must be a float scalar in a plan.buffer, not 'tensor<2xf32>'}}
    plan.metric "loss" %b : tensor<2xf32>
  }
}

// -----

plan.role @metric_c1_type ranks [0, 0] {
  plan.arena @device space device
  %b = plan.buffer "b" in @device bytes 8 scope step category optimizer slots 1
  plan.program "step" {
    // expected-error @+1 {{op "loss" must be a float scalar in a plan.buffer, not 'tensor<i64>'}}
    plan.metric "loss" %b : tensor<i64>
  }
}

// -----

plan.role @metric_c1_bytes ranks [0, 0] {
  plan.arena @device space device
  %b = plan.buffer "b" in @device bytes 4 scope step category optimizer slots 1
  plan.program "step" {
    // expected-error @+1 {{op "loss" must be a float scalar in a plan.buffer, not 'tensor<f64>'}}
    plan.metric "loss" %b : tensor<f64>
  }
}
