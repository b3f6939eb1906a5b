// RUN: split-file %s %t
// RUN: not ds-opt %t/mesh.mlir --ds-join-stages 2>&1 | FileCheck %s --check-prefix=MESH
// RUN: ds-opt %t/ranks.mlir --ds-join-stages --verify-diagnostics
// RUN: ds-opt %t/update.mlir --ds-join-stages --verify-diagnostics
// RUN: ds-opt %t/call.mlir --ds-join-stages --verify-diagnostics
// RUN: ds-opt %t/alone.mlir --ds-join-stages | FileCheck %s --check-prefix=ALONE
// RUN: ds-opt %t/one.mlir --ds-join-stages | FileCheck %s --check-prefix=ONE

// MESH: error: has no dist.mesh; ds-declare-mesh makes it
//--- mesh.mlir
dist.role @stage0 ranks [0, 0] {
}
dist.role @stage1 ranks [1, 1] {
}
//--- ranks.mlir
// expected-error @+1 {{has 2 roles for 3 ranks along axis "pipe"; ds-schedule-calls makes one for each}}
module {
  // expected-note @+1 {{mesh declared here}}
  dist.mesh @mesh ["pipe"] [3]
  dist.role @stage0 ranks [0, 0] {
  }
  dist.role @stage1 ranks [1, 1] {
  }
}
//--- update.mlir
dist.mesh @mesh ["pipe"] [2]
dist.fragment @"update::0" phase update pipe 0 {
}
dist.role @stage0 ranks [0, 0] {
  dist.program @step {
    dist.call @"update::0" microbatch 0
  }
}
// expected-error @+1 {{op has no fragment of phase update and pipe 1; ds-outline-fragments makes it}}
dist.role @stage1 ranks [1, 1] {
}
//--- call.mlir
dist.mesh @mesh ["pipe"] [2]
dist.fragment @"update::0" phase update pipe 0 {
}
// expected-note @+1 {{declared here}}
dist.fragment @"update::1" phase update pipe 1 {
}
dist.role @stage0 ranks [0, 0] {
  dist.program @step {
    dist.call @"update::0" microbatch 0
  }
}
// expected-error @+1 {{op never calls @update::1, its update}}
dist.role @stage1 ranks [1, 1] {
  dist.program @step {
    dist.call @"update::0" microbatch 0
  }
}
//--- alone.mlir
// Tests that nothing is sent of a parameter that one role holds, of a frozen one that both do, of a norm that a role has for itself, nor of
// a loss that the first role measures.
// ALONE-NOT: dist.channel
// ALONE-NOT: dist.send
// ALONE-NOT: dist.all_gather
dist.mesh @mesh ["pipe"] [2]
train.variable parameter @w : tensor<4xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"w::gradient" of @w : tensor<4xf32>
train.variable parameter @v : tensor<4xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"v::gradient" of @v : tensor<4xf32>
train.variable parameter @frozen : tensor<4xf32> from #train.fill<0.0>
train.variable metric @loss : tensor<f32>
train.variable metric @grad_norm : tensor<f64>
dist.fragment @"forward::0" phase forward stage 0 {
  %w = train.read @w : tensor<4xf32>
  %f = train.read @frozen : tensor<4xf32>
  %0 = train.reduce_sum %w over [0] : (tensor<4xf32>) -> tensor<f32>
  train.accumulate %0 into @loss : tensor<f32>
}
dist.fragment @"forward::1" phase forward stage 1 {
  %v = train.read @v : tensor<4xf32>
  %f = train.read @frozen : tensor<4xf32>
}
dist.fragment @"update::0" phase update pipe 0 {
  %0 = train.read @"w::gradient" : tensor<4xf32>
  %1 = train.block_sum_squares %0 : (tensor<4xf32>) -> tensor<1xf64>
  %2 = train.global_norm %1 : (tensor<1xf64>) -> tensor<f64>
  train.store %2 into @grad_norm : tensor<f64>
}
dist.fragment @"update::1" phase update pipe 1 {
}
dist.role @stage0 ranks [0, 0] {
  dist.program @step {
    dist.call @"forward::0" microbatch 0
    dist.call @"update::0" microbatch 0
  }
}
dist.role @stage1 ranks [1, 1] {
  dist.program @step {
    dist.call @"forward::1" microbatch 0
    dist.call @"update::1" microbatch 0
  }
}
//--- one.mlir
// Tests that one role needs nobody, nor an update or a mesh.
// ONE:      dist.role @main ranks [0, 0] {
// ONE-NEXT: }
dist.role @main ranks [0, 0] {
}
