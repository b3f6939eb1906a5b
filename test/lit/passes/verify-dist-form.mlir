// RUN: ds-opt %s --ds-verify-dist-form | FileCheck %s

// Tests two micro-batches in flight: each loads its own values, fed and stored; @reference may hold functions.
// CHECK-LABEL: dist.role @main
dist.value @x : tensor<f32> input "x"
dist.value @h : tensor<f32>
dist.fragment @feed phase feed stage 0 {
  dist.feed @x
}
dist.fragment @forward phase forward stage 0 {
  %0 = dist.load @x : tensor<f32>
  %1 = train.exp %0 : (tensor<f32>) -> tensor<f32>
  dist.store %1 as @h : tensor<f32>
}
dist.fragment @backward phase backward stage 0 {
  %0 = dist.load @h : tensor<f32>
}
dist.role @main ranks [0, 0] {
  dist.program @step {
    dist.call @feed microbatch 0
    dist.call @feed microbatch 1
    dist.call @forward microbatch 1
    dist.call @forward microbatch 0
    dist.call @backward microbatch 1
    dist.call @backward microbatch 0
  }
}
module @reference {
  func.func @microbatch() {
    return
  }
}
