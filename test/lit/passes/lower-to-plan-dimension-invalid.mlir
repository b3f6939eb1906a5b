// RUN: ds-opt %s --ds-lower-to-plan --split-input-file --verify-diagnostics

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
