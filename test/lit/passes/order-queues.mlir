// RUN: ds-opt %s --ds-order-queues=patience=8 --split-input-file | FileCheck %s
// RUN: ds-opt %s --ds-order-queues=patience=8 --ds-assign-offsets=alignment=64 --split-input-file | FileCheck %s --check-prefix=LIFE

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

// -----

// Tests what a step copies to the device at its beginning: the routine that uses it first waits, in each of its calls, and no other; the
// next program does not.
// CHECK-LABEL: plan.role @starts
// CHECK:         plan.routine @forward
// CHECK-NEXT:      plan.kernel "exp" {{.*}} on @compute{{$}}
// CHECK-NEXT:      plan.kernel "neg" {{.*}} on @compute wait [@[[THERE:[a-z0-9_]+]]] [0]{{$}}
// CHECK:         plan.routine @backward
// CHECK-NEXT:      plan.kernel "neg" {{.*}} on @compute{{$}}
// CHECK:         plan.routine @evaluate
// CHECK-NEXT:      plan.kernel "neg" {{.*}} on @compute{{$}}
// CHECK:         plan.routine @start
// CHECK-NEXT:      plan.fill
// CHECK-NEXT:      plan.copy{{.*}} on @fetch wait [@{{.*}}] [0] signal [@[[THERE]]]
// CHECK-NEXT:    }
plan.role @starts ranks [0, 0] {
  plan.arena @device space device
  plan.arena @host space host
  plan.queue @compute kind compute
  %there = plan.buffer "w" in @host bytes 16 scope plan category weights slots 1 of @w
  %w = plan.buffer "w" in @device bytes 16 scope step category weights slots 1
  %x = plan.buffer "x" in @device bytes 16 scope call category activations slots 1
  plan.routine @forward phase forward stage 0 {
    plan.kernel "exp" {}(%x, %x) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "neg" {}(%w, %x) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.routine @backward phase backward stage 0 {
    plan.kernel "neg" {}(%w, %x) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.routine @evaluate phase evaluate stage 0 {
    plan.kernel "neg" {}(%w, %x) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.routine @start phase begin {
    plan.copy(%there, %w) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.program "step" {
    plan.call @start microbatch 1
    plan.call @forward microbatch 0
    plan.call @backward microbatch 0
    plan.call @forward microbatch 1
    plan.call @backward microbatch 1
  }
  plan.program "evaluate" {
    plan.call @evaluate microbatch 0
  }
}

// -----

// Tests a kernel on the host in a backward. Each copy takes 0.32 s, the kernel 0.001 s. Compute waits for the copy that the kernel needs when
// it should have ended, which is after the first product of 1.6 s. For the kernel and for the copy of what it makes it waits when eight times
// as long is over: after the second product and after the fourth.
// CHECK-LABEL: plan.role @beside
// CHECK:         plan.routine @backward
// CHECK-NEXT:      plan.kernel "neg" {{.*}} on @compute signal [@[[READY:.*]]]
// CHECK-NEXT:      plan.copy{{.*}} on @evict wait [@[[READY]]] [0] signal [@[[AWAY:.*]]]
// CHECK-NEXT:      plan.kernel "sgd"{{.*}} on @host_compute wait [@[[READY]], @[[AWAY]]] [0, 0] signal [@[[MADE:.*]]]
// CHECK-NEXT:      plan.copy{{.*}} on @fetch wait [@[[READY]], @[[MADE]]] [0, 0] signal [@[[BACK:.*]]]
// CHECK-NEXT:      plan.kernel "matmul"{{.*}} on @compute{{$}}
// CHECK-NEXT:      plan.kernel "matmul"{{.*}} on @compute wait [@[[AWAY]]] [0]{{$}}
// CHECK-NEXT:      plan.kernel "matmul"{{.*}} on @compute wait [@[[MADE]]] [0]{{$}}
// CHECK-NEXT:      plan.kernel "matmul"{{.*}} on @compute{{$}}
// CHECK-NEXT:      plan.kernel "neg"{{.*}} on @compute wait [@[[BACK]]] [0]{{$}}
// CHECK-NEXT:    }
module attributes {dist.links = {"device-host" = array<f64: 1.25e7, 0.0>}} {
plan.role @beside ranks [0, 0] {
  plan.arena @device space device
  plan.arena @host space host
  plan.queue @compute kind compute
  %w = plan.buffer "w" in @device bytes 4000000 scope plan category weights slots 1 of @w
  %m = plan.buffer "m" in @host bytes 4000000 scope plan category optimizer slots 1 of @m
  %v = plan.buffer "v" in @host bytes 4000000 scope step category communication slots 1
  %there = plan.buffer "g" in @host bytes 4000000 scope call category communication slots 1
  %g = plan.buffer "g" in @device bytes 4000000 scope call category communication slots 1
  %x = plan.buffer "x" in @device bytes 4000000 scope call category activations slots 1
  %a = plan.buffer "a" in @device bytes 64000000 scope call category activations slots 1
  plan.routine @backward phase backward stage 0 {
    plan.kernel "neg" {}(%x, %g) : [tensor<1000000xf32>, tensor<1000000xf32>] access [1, 2] at [0, 0] on @compute
    plan.copy(%g, %there) : [tensor<1000000xf32>, tensor<1000000xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "sgd" {}(%v, %there, %m) : [tensor<1000000xf32>, tensor<1000000xf32>, tensor<1000000xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
    plan.copy(%v, %w) : [tensor<1000000xf32>, tensor<1000000xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "matmul" {bias = 0 : i64, pieces = 1 : i64, trans_a = 0 : i64, trans_b = 0 : i64} (%a, %a, %a) : [tensor<4000x4000xf32>, tensor<4000x4000xf32>, tensor<4000x4000xf32>] access [1, 1, 2] at [0, 0, 0] on @compute
    plan.kernel "matmul" {bias = 0 : i64, pieces = 1 : i64, trans_a = 0 : i64, trans_b = 0 : i64} (%a, %a, %a) : [tensor<4000x4000xf32>, tensor<4000x4000xf32>, tensor<4000x4000xf32>] access [1, 1, 2] at [0, 0, 0] on @compute
    plan.kernel "matmul" {bias = 0 : i64, pieces = 1 : i64, trans_a = 0 : i64, trans_b = 0 : i64} (%a, %a, %a) : [tensor<4000x4000xf32>, tensor<4000x4000xf32>, tensor<4000x4000xf32>] access [1, 1, 2] at [0, 0, 0] on @compute
    plan.kernel "matmul" {bias = 0 : i64, pieces = 1 : i64, trans_a = 0 : i64, trans_b = 0 : i64} (%a, %a, %a) : [tensor<4000x4000xf32>, tensor<4000x4000xf32>, tensor<4000x4000xf32>] access [1, 1, 2] at [0, 0, 0] on @compute
    plan.kernel "neg" {}(%x, %x) : [tensor<1000000xf32>, tensor<1000000xf32>] access [1, 2] at [0, 0] on @compute
  }
}
}

// -----

// Tests that a message waits for a copy out of what it leaves from, whose last use is then one command's: its life ends with the message.
// CHECK-LABEL: plan.role @leaves
// CHECK:         plan.routine @backward
// CHECK-NEXT:      plan.kernel "exp" {{.*}} on @compute wait [@"tied::sent"] [2] signal [@[[READY:.*]]]
// CHECK-NEXT:      plan.copy{{.*}} on @evict wait [@[[READY]]] [0] signal [@[[AWAY:.*]]]
// CHECK-NEXT:      plan.send @tied({{.*}} on @tied wait [@[[READY]], @[[AWAY]]] [0, 0] signal [@"tied::sent"]
// CHECK-NEXT:      plan.fill{{.*}} on @compute wait [@[[AWAY]]] [0]{{$}}
// CHECK-NEXT:    }
// LIFE-LABEL:  plan.role @leaves
// LIFE:          plan.buffer "y" {{.*}} scope slot {{.*}} lives [0, 0, 0, 0, 2]
plan.channel @tied axis 1 from 0 to 1
plan.role @leaves ranks [0, 0] {
  plan.arena @device space device
  plan.arena @host space host
  plan.queue @compute kind compute
  %x = plan.buffer "x" in @device bytes 16 scope call category activations slots 1
  %y = plan.buffer "y" in @device bytes 16 scope slot category activations slots 1
  %there = plan.buffer "there" in @host bytes 16 scope call category communication slots 1
  plan.routine @backward phase backward stage 0 {
    plan.kernel "exp" {}(%x, %y) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.copy(%y, %there) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.send @tied(%y) : [tensor<4xf32>] access [1] at [0] on @compute
  }
  plan.program "step" {
    plan.call @backward microbatch 0
    plan.call @backward microbatch 1
    plan.call @backward microbatch 2
  }
}
