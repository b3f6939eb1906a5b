// RUN: ds-opt %s --ds-lower-pipeline --split-input-file | FileCheck %s --implicit-check-not=train.numerics

// Tests slices, members and places: this rank's slice of a replicated bucket is strided; what is packed is computed in place, and
// only the padding is filled; a sum has scratch and adds onto the slice.
// CHECK-LABEL: module
// CHECK:       plan.communicator @data_ranks axes [0]
// CHECK:       plan.role @main
// CHECK-DAG:     %[[F:.*]] = plan.buffer "dist.pack" in @device bytes 16384 scope call category communication
// CHECK-DAG:     %[[W:.*]] = plan.buffer "w" in @device bytes 16384 scope plan category weights slots 1 of @w
// CHECK-DAG:     %[[G:.*]] = plan.buffer "g" in @device bytes 4096 scope step category gradients
// CHECK-DAG:     %[[S:.*]] = plan.buffer "messages" in @device bytes 16384 scope call category communication
// CHECK-LABEL: plan.routine @backward
// CHECK-NEXT:    plan.kernel "elementwise" {{.*}}(%[[W]], %[[F]]) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
// CHECK-NEXT:    plan.kernel "elementwise" {{.*}}(%[[W]], %[[F]]) : [tensor<1000xf32>, tensor<1000xf32>] access [1, 2] at [4096, 4096] on @compute
// CHECK-NEXT:    plan.fill(%[[F]]) : [tensor<2072xf32>] access [2] at [8096] on @compute
// CHECK-NEXT:    plan.collective reduce_scatter accumulate(%[[F]], %[[G]], %[[S]]) : [tensor<4096xf32>, tensor<1024xf32>, tensor<16384xi8>] access [1, 3, 4] at [0, 0, 0] over @data_ranks on @compute
// CHECK-LABEL: plan.routine @update
// CHECK-NEXT:    plan.collective all_gather(%[[W]], %[[W]]) : [tensor<1024xf32>, tensor<4096xf32>] access [1, 2] at [0, 0] stride [4096, 0] over @data_ranks on @compute
// CHECK-LABEL: plan.routine @begin_step
// CHECK-NEXT:    plan.fill(%[[G]]) : [tensor<1024xf32>]
dist.mesh @mesh ["data"] [4]
train.variable parameter @p : tensor<1024xf32> from #train.fill<0.0> {trainable}
train.variable parameter @q : tensor<1000xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"p::gradient" of @p : tensor<1024xf32>
train.variable gradient @"q::gradient" of @q : tensor<1000xf32>
dist.bucket @w on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <replicated> members [@p, @q] at [0, 1024]
dist.bucket @g on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@"p::gradient", @"q::gradient"] at [0, 1024]
dist.fragment @backward phase backward stage 0 {
  %p = train.read @p : tensor<1024xf32>
  %0 = train.exp %p : (tensor<1024xf32>) -> tensor<1024xf32>
  %q = train.read @q : tensor<1000xf32>
  %1 = train.exp %q : (tensor<1000xf32>) -> tensor<1000xf32>
  %f = dist.pack %0, %1 at [0, 1024] : (tensor<1024xf32>, tensor<1000xf32>) -> tensor<4096xf32>
  dist.reduce_scatter %f into [@g] accumulate on @mesh axis "data" : (tensor<4096xf32>) -> ()
}
dist.fragment @update phase update pipe 0 {
  %own = train.read @w : tensor<1024xf32>
  dist.all_gather %own into [@w] on @mesh axis "data" : (tensor<1024xf32>) -> ()
}
dist.role @main ranks [0, 3] {
  dist.program @step {
    dist.call @backward microbatch 0
    dist.call @update microbatch 0
  }
}

// -----

// Tests two queues: a collective waits for the last command before its start, the first command after its done waits for it; where
// there is none, a fill of nothing takes its place.
// CHECK-LABEL: module
// CHECK:       plan.queue @collective kind collective
// CHECK-LABEL: plan.routine @forward
// CHECK-NEXT:    plan.fill(%{{.*}}) : [tensor<0xi8>] {{.*}} on @compute signal [@ready_0]
// CHECK-NEXT:    plan.collective all_gather({{.*}} on @collective wait [@ready_0] [0] signal [@done_1]
// CHECK-NEXT:    plan.kernel "elementwise" {{.*}} on @compute signal [@ready_2]
// CHECK-NEXT:    plan.collective all_gather({{.*}} on @collective wait [@ready_2] [0] signal [@done_3]
// CHECK-NEXT:    plan.kernel "elementwise" {{.*}} on @compute wait [@done_1] [0]
// CHECK-NEXT:    plan.fill(%{{.*}}) : [tensor<0xi8>] {{.*}} on @compute wait [@done_3] [0]
// CHECK-NEXT:  }
dist.mesh @mesh ["data"] [4]
train.variable parameter @p : tensor<1024xf32> from #train.fill<0.0> {trainable}
train.variable parameter @q : tensor<1000xf32> from #train.fill<0.0> {trainable}
dist.bucket @zp on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@p] at [0]
dist.bucket @zq on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@q] at [0]
dist.fragment @forward phase forward stage 0 {
  %x = train.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %own = train.read @zp : tensor<1024xf32>
  %t = dist.all_gather_start %own on @mesh axis "data" : (tensor<1024xf32>) -> !dist.token
  %0 = train.exp %x : (tensor<2xf32>) -> tensor<2xf32>
  %other = train.read @zq : tensor<1024xf32>
  %u = dist.all_gather_start %other on @mesh axis "data" : (tensor<1024xf32>) -> !dist.token
  %all = dist.all_gather_done %t : (!dist.token) -> tensor<4096xf32>
  %p = dist.view %all at 0 : tensor<4096xf32> -> tensor<1024xf32>
  %1 = train.exp %p : (tensor<1024xf32>) -> tensor<1024xf32>
  %rest = dist.all_gather_done %u : (!dist.token) -> tensor<4096xf32>
}
dist.role @main ranks [0, 3] {
  dist.program @step {
    dist.call @forward microbatch 0
  }
}
