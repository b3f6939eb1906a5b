// RUN: ds-opt %s --ds-split-updates=elements=1000000000 | FileCheck %s

// Tests that a piece takes 16 times the drive's latency to copy, rounded up to a multiple of 65,536 elements: 16 * 20 us * 4 GB/s are
// 320,000 elements. Without a drive in the machine file all of these would be one piece.
// CHECK-LABEL: plan.routine @large
// CHECK-NEXT:    plan.kernel "sgd" {}({{.*}}) : [tensor<327680xf32>, tensor<327680xf32>, tensor<327680xf32>] access [3, 1, 3] at [0, 0, 0]
// CHECK-NEXT:    plan.kernel "sgd" {}({{.*}}) : [tensor<172320xf32>, tensor<172320xf32>, tensor<172320xf32>] access [3, 1, 3] at [1310720, 1310720, 1310720]
// CHECK-NEXT:  }
module attributes {dist.links = {"host-nvme" = array<f64: 4.0e9, 2.0e-5>}} {
  plan.role @r ranks [0, 0] {
    plan.arena @device space device
    plan.queue @compute kind compute
    %w = plan.buffer "w" in @device bytes 2000000 scope plan category weights slots 1 of @w
    %m = plan.buffer "m" in @device bytes 2000000 scope plan category optimizer slots 1 of @m
    %g = plan.buffer "g" in @device bytes 2000000 scope step category gradients slots 1
    plan.routine @large phase update {
      plan.kernel "sgd" {}(%w, %g, %m) : [tensor<500000xf32>, tensor<500000xf32>, tensor<500000xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
    }
  }
}
