// RUN: ds-opt %s --ds-select-kernels --ds-allocate-buffers | FileCheck %s

// Tests that an exchange of slices is one collective, source and target apart, and needs no scratch.
// CHECK:      plan.collective all_to_all(%[[X:.*]], %[[Y:.*]]) : [tensor<8x4xf32>, tensor<8x4xf32>] access [1, 2] at [0, 0] over @data_ranks on @compute
// CHECK-NEXT: plan.kernel "elementwise" {{.*}}(%[[Y]], %{{.*}})
dist.mesh @mesh ["data"] [4]
train.variable parameter @w : tensor<8x4xf32> from #train.fill<1.0>
train.variable gradient @m : tensor<8x4xf32>
dist.fragment @forward phase forward stage 0 {
  %x = train.read @w : tensor<8x4xf32>
  %0 = dist.all_to_all %x on @mesh axis "data" : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = train.exp %0 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  train.accumulate %1 into @m : tensor<8x4xf32>
}
dist.role @main ranks [0, 3] {
  dist.program @step {
    dist.call @forward microbatch 0
  }
}
