// RUN: ds-opt %s --ds-lower-pipeline | FileCheck %s

// Tests that a message of what a collective has written waits for the collective's end: no compute command stands between them that would.
// CHECK-LABEL: plan.routine @"update::1" phase update {
// CHECK:         plan.collective all_reduce{{.*}} on @collective wait [@[[READY:.*]]] [0] signal [@[[DONE:.*]]]
// CHECK-NEXT:    plan.send @tied(%{{.*}}) : [tensor<1024xf32>] access [1] at [0] on @tied wait [@[[READY]], @[[DONE]]] [0, 0] signal [@"tied::sent"]

// Tests that a message of something else does not.
// CHECK-NEXT:    plan.send @other(%{{.*}}) : [tensor<4xf32>] access [1] at [0] on @other wait [@[[READY]]] [0] signal [@"other::sent"]
dist.mesh @mesh ["pipe", "data"] [2, 2]
train.variable parameter @t : tensor<1024xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"t::gradient" of @t : tensor<1024xf32>
train.variable parameter @v : tensor<4xf32> from #train.fill<0.0>
dist.bucket @g on @mesh axis "data" : tensor<1024xf32> slices tensor<512xf32> sharding <replicated> members [@"t::gradient"] at [0]
dist.channel @tied axis "pipe" from 1 to 0
dist.channel @other axis "pipe" from 1 to 0
dist.fragment @"update::1" phase update pipe 1 {
  %whole = dist.read_whole @g : tensor<1024xf32>
  %token = dist.all_reduce_start %whole into [@g] on @mesh axis "data" : (tensor<1024xf32>) -> !dist.token
  dist.all_reduce_done %token : (!dist.token) -> ()
  %sum = train.read @"t::gradient" : tensor<1024xf32>
  dist.send %sum on @tied : tensor<1024xf32>
  %v = train.read @v : tensor<4xf32>
  dist.send %v on @other : tensor<4xf32>
}
dist.role @stage1 ranks [2, 3] {
  dist.program @step {
    dist.call @"update::1" microbatch 0
  }
}
