// RUN: ds-opt %s --ds-select-kernels --split-input-file --verify-diagnostics

dist.fragment @forward phase forward stage 0 {
  // expected-error @+1 {{op has no kernel}}
  %0 = "builtin.unrealized_conversion_cast"() : () -> tensor<f32>
}
dist.role @main ranks [0, 0] {
  dist.program @step {
    dist.call @forward microbatch 0
  }
}

// -----

train.variable parameter @w : tensor<i64> from #train.fill<0.0>
dist.fragment @forward phase forward stage 0 {
  %0 = train.read @w : tensor<i64>
  %1 = train.fused %0 {
  ^bb0(%a: tensor<i64>):
    %c = train.constant dense<9007199254740993> : tensor<i64>
    // expected-error @+1 {{op has no place in an elementwise program}}
    %2 = train.add %a, %c : (tensor<i64>, tensor<i64>) -> tensor<i64>
    train.yield %2 : tensor<i64>
  } : (tensor<i64>) -> tensor<i64>
}
dist.role @main ranks [0, 0] {
  dist.program @step {
    dist.call @forward microbatch 0
  }
}
