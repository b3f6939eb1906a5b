// RUN: ds-opt %s --split-input-file --verify-diagnostics

// pipeline_c1
// expected-error @+1 {{op has 1 dist.stage; a model that is not cut has no dist.pipeline}}
dist.pipeline schedule "1f1b" chunks 1 bubble 0.0 {
  dist.stage from "a" to "b" forward 1.0 backward 2.0 weight 0.0 in_flight 1 sends [] : [] to []
}

// -----

// pipeline_c1
// expected-error @+1 {{op holds 'dist.mesh'; it describes stages}}
dist.pipeline schedule "1f1b" chunks 1 bubble 0.0 {
  dist.mesh @mesh ["data"] [1]
}

// -----

dist.pipeline schedule "1f1b" chunks 1 bubble 0.0 {
  // stage_c1
  // expected-error @+1 {{op sends 1 values of 0 types to 2 stages; these must be as many}}
  dist.stage from "a" to "b" forward 1.0 backward 2.0 weight 0.0 in_flight 1 sends ["b"] : [] to [1, 2]
  dist.stage from "c" to "d" forward 1.0 backward 2.0 weight 0.0 in_flight 1 sends [] : [] to []
}
