// RUN: ds-opt %s --ds-scale-loss="initial=0" --split-input-file --verify-diagnostics

// expected-error @+1 {{has no @microbatch and @update; ds-differentiate and ds-insert-optimizer make them}}
module {
}

// -----

func.func @microbatch() {
  return
}
// expected-error @+1 {{has 0 global norms; an overflow is seen in the one of all}}
func.func @update() {
  return
}

// -----

// expected-error @+1 {{initial is 0.000000e+00, window 0, hysteresis 1, least 1.000000e+00; scales must be above 0, counts at least 0 and 1}}
module {
  func.func @microbatch() {
    return
  }
  func.func @update(%s: tensor<1xf64>) {
    %norm = train.global_norm %s : (tensor<1xf64>) -> tensor<f64>
    return
  }
}
