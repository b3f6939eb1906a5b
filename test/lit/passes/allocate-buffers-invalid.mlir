// RUN: ds-opt %s --ds-allocate-buffers --split-input-file --verify-diagnostics

dist.fragment @forward phase forward stage 0 {
  %0 = train.constant dense<1.0> : tensor<f32>
  // expected-error @+1 {{op computes something, but is no kernel; ds-select-kernels makes it one}}
  %1 = train.exp %0 : (tensor<f32>) -> tensor<f32>
}
dist.role @main ranks [0, 0] {
  dist.program @step {
    dist.call @forward microbatch 0
  }
}

// -----

dist.value @h : tensor<f32>
dist.fragment @forward phase forward stage 0 {
  // expected-note @+1 {{the other op}}
  %0 = dist.load @h : tensor<f32>
  // expected-error @+1 {{op @h is loaded or stored by another op of the fragment}}
  dist.store %0 as @h : tensor<f32>
}
dist.role @main ranks [0, 0] {
  dist.program @step {
    dist.call @forward microbatch 0
  }
}

// -----

dist.mesh @mesh ["data"] [2]
train.variable parameter @w : tensor<4x4xf32> from #train.fill<1.0>
dist.fragment @forward phase forward stage 0 {
  %x = train.read @w : tensor<4x4xf32>
  // expected-error @+1 {{op cuts or joins dimension 1; a plan's slices lie in one piece, which those of dimension 0 do}}
  %0 = dist.all_to_all %x on @mesh axis "data" dim 1 : (tensor<4x4xf32>) -> tensor<4x4xf32>
}
dist.role @main ranks [0, 1] {
  dist.program @step {
    dist.call @forward microbatch 0
  }
}
