// RUN: ds-opt %s --ds-keep-old-state | FileCheck %s

// Tests that moments which the tail writes get a second place, which all copies write, those of other commands, too, and that reads
// stay. Moments that the tail does not write, what is no optimizer state, and host memory keep their places.
// CHECK-LABEL: plan.role @r
// CHECK:         %[[M:[a-z0-9]+]] = plan.buffer "m" in @nvme bytes 4096 scope plan category optimizer slots 1 of @m{{$}}
// CHECK-NEXT:    %[[NEXT:[a-z0-9]+]] = plan.buffer "m" in @nvme bytes 4096 scope plan category optimizer slots 1 of @m next
// CHECK-NEXT:    %[[N:[a-z0-9]+]] = plan.buffer "n" in @nvme
// CHECK-NEXT:    %[[W:[a-z0-9]+]] = plan.buffer "w" in @nvme
// CHECK-NEXT:    %[[H:[a-z0-9]+]] = plan.buffer "h" in @host
// CHECK-NOT:     next
// CHECK:         plan.routine @update
// CHECK-NEXT:      plan.copy(%[[M]], %[[X:[a-z0-9]+]])
// CHECK-NEXT:      plan.copy(%[[X]], %[[NEXT]])
// CHECK-NEXT:      plan.copy(%[[X]], %[[N]])
// CHECK:         plan.routine @redo
// CHECK-NEXT:      plan.copy(%[[M]], %[[X]])
// CHECK-NEXT:      plan.copy(%[[X]], %[[NEXT]])
// CHECK-NEXT:      plan.copy(%[[X]], %[[W]])
// CHECK-NEXT:      plan.copy(%[[X]], %[[H]])
plan.role @r ranks [0, 0] {
  plan.arena @host space host
  plan.arena @nvme space nvme
  plan.queue @compute kind compute
  %m = plan.buffer "m" in @nvme bytes 4096 scope plan category optimizer slots 1 of @m
  %n = plan.buffer "n" in @nvme bytes 4096 scope plan category optimizer slots 1 of @n
  %w = plan.buffer "w" in @nvme bytes 4096 scope plan category weights slots 1 of @w
  %h = plan.buffer "h" in @host bytes 4096 scope plan category optimizer slots 1 of @h
  %f = plan.buffer "f" in @host bytes 8 scope step category activations slots 1
  %x = plan.buffer "x" in @host bytes 4096 scope step category communication slots 1
  plan.routine @update phase update {
    plan.copy(%m, %x) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
    plan.copy(%x, %m) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
    plan.copy(%x, %n) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.routine @redo phase update {
    plan.copy(%m, %x) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
    plan.copy(%x, %m) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
    plan.copy(%x, %w) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
    plan.copy(%x, %h) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.program "step" {
    plan.call @update microbatch 0
    plan.tail unless_one %f : tensor<f64>
    plan.call @redo microbatch 0
  }
}
