// RUN: ds-opt %s --ds-select-kernels --ds-allocate-buffers --split-input-file | FileCheck %s

// Tests that results have buffers of their own, that loads, reads and reshapes are views, that stores copy, and that there is one queue.
// CHECK-LABEL: plan.role @main
// CHECK-NEXT:    plan.arena @device space device
// CHECK-NEXT:    plan.queue @compute kind compute
// CHECK:         %[[X:.*]] = plan.buffer "x" in @device bytes 16 scope slot category inputs slots 1
// CHECK-LABEL:   plan.routine @feed
// CHECK-NEXT:      plan.feed "x"(%[[X]]) : [tensor<2x2xf32>] access [2] at [0] on @compute{{$}}
// CHECK:         %[[W:.*]] = plan.buffer "w" in @device bytes 16 scope plan category weights slots 1 of @w
// CHECK:         %[[Y:.*]] = plan.buffer "elementwise" in @device bytes 16 scope call category activations slots 1
// CHECK:         %[[H:.*]] = plan.buffer "h" in @device bytes 16 scope slot category activations slots 1
// CHECK:         %[[M:.*]] = plan.buffer "m" in @device bytes 16 scope step category optimizer slots 1
// CHECK-LABEL:   plan.routine @forward
// CHECK-NEXT:      plan.kernel "elementwise" {{.*}}(%[[X]], %[[W]], %[[Y]]) : [tensor<4xf32>, tensor<4xf32>, tensor<4xf32>] access [1, 1, 2] at [0, 0, 0] on @compute reference [7]
// CHECK-NEXT:      plan.kernel "elementwise" {{.*}}(%[[Y]], %[[H]]) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute{{$}}
// CHECK-NEXT:      plan.kernel "elementwise" {{.*}}(%[[Y]], %[[M]]) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute{{$}}
// CHECK-NEXT:    }
train.variable parameter @w : tensor<4xf32> from #train.fill<0.0> {trainable}
train.variable metric @m : tensor<4xf32>
dist.value @x : tensor<2x2xf32> input "x"
dist.value @h : tensor<4xf32>
dist.fragment @feed phase feed stage 0 {
  dist.feed @x
}
dist.fragment @forward phase forward stage 0 {
  %x = dist.load @x : tensor<2x2xf32>
  %flat = train.reshape %x to [4] : (tensor<2x2xf32>) -> tensor<4xf32>
  %w = train.read @w : tensor<4xf32>
  %0 = train.mul %flat, %w {train.reference = array<i64: 7>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  dist.store %0 as @h : tensor<4xf32>
  train.store %0 into @m : tensor<4xf32>
}
dist.role @main ranks [0, 0] {
  dist.program @step {
    dist.call @feed microbatch 0
    dist.call @forward microbatch 0
  }
}

// -----

// Tests that views and reads are copied where they are stored, twice if need be.
// CHECK-LABEL: plan.role @main
// CHECK-LABEL:   plan.routine @forward
// CHECK-NEXT:      plan.kernel "elementwise" {{.*}}(%[[W:.*]], %[[H:.*]]) : [tensor<4xf32>, tensor<4xf32>]
// CHECK-NEXT:      plan.kernel "elementwise" {{.*}}(%[[W]], %[[K:.*]]) : [tensor<4xf32>, tensor<4xf32>]
// CHECK-NEXT:    }
train.variable parameter @w : tensor<2x2xf32> from #train.fill<0.0> {trainable}
dist.value @h : tensor<4xf32>
dist.value @k : tensor<4xf32>
dist.fragment @forward phase forward stage 0 {
  %w = train.read @w : tensor<2x2xf32>
  %flat = train.reshape %w to [4] : (tensor<2x2xf32>) -> tensor<4xf32>
  dist.store %flat as @h : tensor<4xf32>
  dist.store %flat as @k : tensor<4xf32>
}
dist.role @main ranks [0, 0] {
  dist.program @step {
    dist.call @forward microbatch 0
  }
}

// -----

// Tests that what is packed is copied and the rest zeroed, and that a start has a token that its done awaits.
// CHECK-LABEL: plan.role @main
// CHECK:         %[[F:.*]] = plan.buffer "dist.pack" in @device bytes 16384 scope call category communication
// CHECK-LABEL:   plan.routine @backward
// CHECK-NEXT:      plan.kernel "elementwise" {{.*}}(%{{.*}}, %[[P:.*]]) : [tensor<1024xf32>, tensor<1024xf32>]
// CHECK-NEXT:      plan.kernel "elementwise" {{.*}}(%[[P]], %[[F]]) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
// CHECK-NEXT:      plan.fill(%[[F]]) : [tensor<3072xf32>] access [2] at [4096] on @compute
// CHECK-NEXT:      %[[T:.*]] = plan.collective reduce_scatter accumulate(%[[F]], %{{.*}}, %{{.*}}) {{.*}} over @data_ranks on @compute -> !plan.token
// CHECK-NEXT:      plan.kernel "elementwise"
// CHECK-NEXT:      plan.await %[[T]]
// CHECK-NEXT:    }
dist.mesh @mesh ["data"] [4]
train.variable parameter @p : tensor<1024xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"p::gradient" : tensor<1024xf32>
dist.bucket @g on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@"p::gradient"] at [0]
dist.fragment @backward phase backward stage 0 {
  %p = train.read @p : tensor<1024xf32>
  %0 = train.exp %p : (tensor<1024xf32>) -> tensor<1024xf32>
  %f = dist.pack %0 at [0] : (tensor<1024xf32>) -> tensor<4096xf32>
  %t = dist.reduce_scatter_start %f into [@g] accumulate on @mesh axis "data" : (tensor<4096xf32>) -> !dist.token
  %1 = train.exp %0 : (tensor<1024xf32>) -> tensor<1024xf32>
  dist.reduce_scatter_done %t : (!dist.token) -> ()
}
dist.role @main ranks [0, 3] {
  dist.program @step {
    dist.call @backward microbatch 0
  }
}
