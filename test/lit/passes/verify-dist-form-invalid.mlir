// RUN: ds-opt %s --ds-verify-dist-form --split-input-file --verify-diagnostics

// expected-error @+1 {{is left over; ds-outline-fragments should have cut it into fragments}}
func.func @microbatch() {
  return
}

// -----

dist.value @h : tensor<f32>
dist.fragment @forward {
  %0 = train.constant dense<1.0> : tensor<f32>
  dist.keep %0 as @h : tensor<f32>
}
dist.fragment @backward {
  // expected-note @+1 {{taken here}}
  %0 = dist.take @h : tensor<f32>
}
dist.role @main ranks [0, 0] {
  dist.program @other_microbatch {
    dist.call @forward microbatch 0
    // expected-error @+1 {{op takes @h of micro-batch 1, which no earlier call kept}}
    dist.call @backward microbatch 1
  }
}

// -----

dist.value @h : tensor<f32>
dist.fragment @forward {
  %0 = train.constant dense<1.0> : tensor<f32>
  dist.keep %0 as @h : tensor<f32>
}
dist.fragment @backward {
  // expected-note @+1 {{taken here}}
  %0 = dist.take @h : tensor<f32>
}
dist.role @main ranks [0, 0] {
  dist.program @first {
    dist.call @forward microbatch 0
  }
  // What one program kept is gone in the next.
  dist.program @second {
    // expected-error @+1 {{op takes @h of micro-batch 0, which no earlier call kept}}
    dist.call @backward microbatch 0
  }
}
