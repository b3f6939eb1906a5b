// RUN: ds-opt %s --ds-select-kernels='device=cuda workspace-bytes-per-thread=1024' --ds-allocate-buffers=device=cuda --split-input-file | FileCheck %s --check-prefixes=CHECK,PLAIN
// RUN: ds-opt %s --ds-select-kernels='device=cuda tf32=true workspace-bytes-per-thread=1024' --ds-allocate-buffers=device=cuda --split-input-file | FileCheck %s --check-prefixes=CHECK,TF32

// Tests that a product has a library's workspace, that TF32 is said of float32 alone, and that a kernel which needs no workspace has no
// operand for it.
// CHECK-LABEL: plan.routine @forward
// PLAIN-NOT:     tf32
// TF32:          plan.kernel "matmul" {{{.*}}tf32 = 1 : i64{{.*}}}({{.*}}) : [tensor<4x8xf32>, tensor<8x2xf32>, tensor<4x2xf32>, tensor<1024xi8>] access [1, 1, 2, 4]
// TF32-NOT:      tf32
// CHECK:         plan.kernel "matmul" {{.*}} : [tensor<4x8xf64>, tensor<8x2xf64>, tensor<4x2xf64>, tensor<1024xi8>] access [1, 1, 2, 4]
// CHECK-NEXT:    plan.kernel "softmax" {{.*}} access [1, 2]
dist.mesh @mesh ["data"] [1]
train.variable parameter @a : tensor<4x8xf32> from #train.fill<0.0>
train.variable parameter @b : tensor<8x2xf32> from #train.fill<0.0>
train.variable parameter @c : tensor<4x2xf32> from #train.fill<0.0>
train.variable parameter @d : tensor<4x8xf64> from #train.fill<0.0>
train.variable parameter @e : tensor<8x2xf64> from #train.fill<0.0>
train.variable parameter @f : tensor<4x2xf64> from #train.fill<0.0>
dist.fragment @forward phase forward stage 0 {
  %a = train.read @a : tensor<4x8xf32>
  %b = train.read @b : tensor<8x2xf32>
  %c = train.matmul %a, %b : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  train.store %c into @c : tensor<4x2xf32>
  %d = train.read @d : tensor<4x8xf64>
  %e = train.read @e : tensor<8x2xf64>
  %f = train.matmul %d, %e : (tensor<4x8xf64>, tensor<8x2xf64>) -> tensor<4x2xf64>
  %g = train.softmax %f along 1 : (tensor<4x2xf64>) -> tensor<4x2xf64>
  train.store %g into @f : tensor<4x2xf64>
}
dist.role @main ranks [0, 0] {
  dist.program @step {
    dist.call @forward microbatch 0
  }
}

// -----

// Tests that a sum which is added to has room for what a rank gets of it, and one that is not needs none: one element a rank is what
// the format asks for.
// The order of NCCL's sums is its own.
// CHECK-LABEL: module attributes {train.numerics = #train.numerics<reassociated>} {
// CHECK-LABEL: plan.role @main
// CHECK:         plan.buffer "messages" in @device bytes 4096
// CHECK:         plan.buffer "messages" in @device bytes 16
// CHECK:         plan.collective reduce_scatter accumulate({{.*}}) : [tensor<4096xf32>, tensor<1024xf32>, tensor<4096xi8>]
// CHECK:         plan.collective reduce_scatter({{.*}}) : [tensor<4096xf32>, tensor<1024xf32>, tensor<16xi8>]
dist.mesh @mesh ["data"] [4]
train.variable parameter @p : tensor<4096xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"p::gradient" of @p : tensor<4096xf32>
train.variable gradient @"q::gradient" : tensor<4096xf32>
dist.bucket @g on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@"p::gradient"] at [0]
dist.bucket @h on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@"q::gradient"] at [0]
dist.fragment @backward phase backward stage 0 {
  %p = train.read @p : tensor<4096xf32>
  %0 = train.exp %p : (tensor<4096xf32>) -> tensor<4096xf32>
  dist.reduce_scatter %0 into [@g] accumulate on @mesh axis "data" : (tensor<4096xf32>) -> ()
  dist.reduce_scatter %0 into [@h] on @mesh axis "data" : (tensor<4096xf32>) -> ()
}
dist.role @main ranks [0, 3] {
  dist.program @step {
    dist.call @backward microbatch 0
  }
}
