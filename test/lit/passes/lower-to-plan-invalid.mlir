// RUN: ds-opt %s --ds-lower-to-plan --split-input-file --verify-diagnostics

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

dist.value @h : tensor<4xf32>
dist.fragment @forward phase forward stage 0 {
  %0 = train.constant dense<1.0> : tensor<2x2xf32>
  %1 = train.reshape %0 to [4] : (tensor<2x2xf32>) -> tensor<4xf32>
  // expected-error @+1 {{op keeps a 'train.reshape', which is repeated where it is needed}}
  dist.store %1 as @h : tensor<4xf32>
}
dist.role @main ranks [0, 0] {
  dist.program @step {
    dist.call @forward microbatch 0
  }
}

// -----

dist.value @h : tensor<f32>
dist.fragment @forward phase forward stage 0 {
  %0 = dist.load @h : tensor<f32>
  %1 = train.exp %0 : (tensor<f32>) -> tensor<f32>
  // expected-error @+1 {{op @h is taken or kept by another op of the fragment}}
  dist.store %1 as @h : tensor<f32>
}
dist.role @main ranks [0, 0] {
  dist.program @step {
    dist.call @forward microbatch 0
  }
}

// -----

train.variable parameter @w : tensor<f32> from #train.fill<0.0>
dist.value @h : tensor<f32>
dist.value @k : tensor<f32>
dist.fragment @forward phase forward stage 0 {
  %0 = train.read @w : tensor<f32>
  %1 = train.exp %0 : (tensor<f32>) -> tensor<f32>
  // expected-error @+1 {{op keeps a tensor that another op keeps; take it by that name}}
  dist.store %1 as @h : tensor<f32>
  dist.store %1 as @k : tensor<f32>
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
