// RUN: ds-opt %s --ds-order-queues --split-input-file | FileCheck %s

// Tests a collective beside compute: it waits for the command before it; what stands behind its await waits for it.
// CHECK-LABEL: plan.role @main
// CHECK:         plan.queue @collective kind collective
// CHECK-LABEL:   plan.routine @forward
// CHECK-NEXT:      plan.kernel "exp" {{.*}} on @compute signal [@[[READY:.*]]]
// CHECK-NEXT:      plan.collective all_gather({{.*}} on @collective wait [@[[READY]]] [0] signal [@[[DONE:.*]]]{{$}}
// CHECK-NEXT:      plan.kernel "exp" {{.*}} on @compute{{$}}
// CHECK-NEXT:      plan.kernel "neg" {{.*}} on @compute wait [@[[DONE]]] [0]{{$}}
// CHECK-NEXT:    }
plan.communicator @data_ranks axes [0]
plan.role @main ranks [0, 3] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %x = plan.buffer "x" in @device bytes 16 scope call category activations slots 1
  %y = plan.buffer "y" in @device bytes 16 scope call category activations slots 1
  %own = plan.buffer "own" in @device bytes 16 scope step category activations slots 1
  %all = plan.buffer "all" in @device bytes 64 scope call category activations slots 1
  plan.routine @forward phase forward stage 0 {
    plan.kernel "exp" {}(%x, %y) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    %t = plan.collective all_gather(%own, %all) : [tensor<4xf32>, tensor<16xf32>] access [1, 2] at [0, 0] over @data_ranks on @compute -> !plan.token
    plan.kernel "exp" {}(%x, %y) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.await %t
    plan.kernel "neg" {}(%x, %y) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
  }
}

// -----

// Tests that compute waits where it touches the bytes of a collective, though the await stands behind, and only there.
// CHECK-LABEL: plan.role @main
// CHECK-LABEL:   plan.routine @forward
// CHECK-NEXT:      plan.fill{{.*}} signal [@[[READY:.*]]]
// CHECK-NEXT:      plan.collective all_gather({{.*}} on @collective wait [@[[READY]]] [0] signal [@[[DONE:.*]]]{{$}}
// CHECK-NEXT:      plan.kernel "neg" {}(%{{.*}}, %{{.*}}) {{.*}} on @compute{{$}}
// CHECK-NEXT:      plan.kernel "neg" {}(%{{.*}}, %{{.*}}) {{.*}} on @compute wait [@[[DONE]]] [0]{{$}}
// CHECK-NEXT:    }
plan.communicator @data_ranks axes [0]
plan.role @main ranks [0, 3] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %y = plan.buffer "y" in @device bytes 16 scope call category activations slots 1
  %own = plan.buffer "own" in @device bytes 16 scope step category activations slots 1
  %all = plan.buffer "all" in @device bytes 64 scope call category activations slots 1
  plan.routine @forward phase forward stage 0 {
    %t = plan.collective all_gather(%own, %all) : [tensor<4xf32>, tensor<16xf32>] access [1, 2] at [0, 0] over @data_ranks on @compute -> !plan.token
    plan.kernel "neg" {}(%own, %y) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "neg" {}(%all, %y) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.await %t
  }
}

// -----

// Tests that a message of what a collective makes waits for it; a gradient has one copy, so what compute does next waits for both.
// CHECK-LABEL: plan.role @main
// CHECK-LABEL:   plan.routine @update
// CHECK-NEXT:      plan.kernel "exp" {{.*}} on @compute signal [@[[READY:.*]]]
// CHECK-NEXT:      plan.collective all_reduce{{.*}} on @collective wait [@[[READY]]] [0] signal [@[[DONE:.*]]]{{$}}
// CHECK-NEXT:      plan.send @tied({{.*}} on @tied wait [@[[READY]], @[[DONE]]] [0, 0] signal [@"tied::sent"]
// CHECK-NEXT:      plan.kernel "neg" {{.*}} on @compute wait [@[[DONE]], @"tied::sent"] [0, 0]{{$}}
// CHECK-NEXT:    }
plan.communicator @data_ranks axes [0]
plan.channel @tied axis 1 from 0 to 1
plan.role @main ranks [0, 3] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %x = plan.buffer "x" in @device bytes 16 scope call category activations slots 1
  %y = plan.buffer "y" in @device bytes 16 scope call category activations slots 1
  %g = plan.buffer "g" in @device bytes 16 scope step category activations slots 1
  %sum = plan.buffer "sum" in @device bytes 16 scope call category activations slots 1
  plan.routine @update phase update {
    plan.kernel "exp" {}(%x, %y) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    %t = plan.collective all_reduce accumulate(%y, %g, %sum) : [tensor<4xf32>, tensor<4xf32>, tensor<16xi8>] access [1, 3, 4] at [0, 0, 0] over @data_ranks on @compute -> !plan.token
    plan.await %t
    plan.send @tied(%g) : [tensor<4xf32>] access [1] at [0] on @compute
    plan.kernel "neg" {}(%x, %y) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
  }
}
