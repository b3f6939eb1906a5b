// RUN: ds-opt %s --ds-join-stages | FileCheck %s

// Tests that the last role sends its targets to the others ahead of their updates, and those of an evaluation to the first alone.
// CHECK-LABEL: dist.fragment @"update::0" phase update pipe 0 {
// CHECK-NEXT:    %[[THEIRS:.*]] = dist.load @"targets::0"
// CHECK-NEXT:    train.store %[[THEIRS]] into @targets
// CHECK-NEXT:    train.read @targets
// CHECK-LABEL: dist.fragment @"update::1" phase update pipe 1 {
// CHECK-NEXT:    %[[OWN:.*]] = train.read @targets
// CHECK-NEXT:    dist.send %[[OWN]] on @"targets::1-0"
// CHECK-NEXT:    train.read @targets
// CHECK-LABEL: dist.fragment @"evaluate::1"
// CHECK:         dist.send %{{.*}} on @"evaluate::targets"
// CHECK:       dist.channel @"targets::1-0" axis "pipe" from 1 to 0
// CHECK-LABEL: dist.fragment @"receive::update::0" phase receive pipe 0 for @"update::0" {
// CHECK-NEXT:    dist.receive [@"targets::0"] on @"targets::1-0"
// CHECK-LABEL: dist.fragment @"evaluate::stored_targets" phase metric pipe 0 {
// CHECK-NEXT:    %[[T:.*]] = dist.load @"evaluate::targets::value"
// CHECK-NEXT:    train.store %[[T]] into @targets
dist.mesh @mesh ["pipe", "data", "tensor"] [2, 1, 1]
train.variable metric @targets : tensor<f64>
train.variable metric @double : tensor<f64>
dist.fragment @"forward::0" phase forward stage 0 {
}
dist.fragment @"forward::1" phase forward stage 1 {
  %0 = train.constant dense<3.0> : tensor<f64>
  train.accumulate %0 into @targets : tensor<f64>
}
dist.fragment @"update::0" phase update pipe 0 {
  %0 = train.read @targets : tensor<f64>
  %1 = train.add %0, %0 : (tensor<f64>, tensor<f64>) -> tensor<f64>
  train.store %1 into @double : tensor<f64>
}
dist.fragment @"update::1" phase update pipe 1 {
  %0 = train.read @targets : tensor<f64>
  %1 = train.add %0, %0 : (tensor<f64>, tensor<f64>) -> tensor<f64>
  train.store %1 into @double : tensor<f64>
}
dist.fragment @"evaluate::0" phase evaluate stage 0 {
}
dist.fragment @"evaluate::1" phase evaluate stage 1 {
  %0 = train.constant dense<3.0> : tensor<f64>
  train.accumulate %0 into @targets : tensor<f64>
}
dist.role @stage0 ranks [0, 0] {
  dist.program @step {
    dist.call @"forward::0" microbatch 0
    dist.call @"update::0" microbatch 0
  }
  dist.program @evaluate {
    dist.call @"evaluate::0" microbatch 0
  }
}
dist.role @stage1 ranks [1, 1] {
  dist.program @step {
    dist.call @"forward::1" microbatch 0
    dist.call @"update::1" microbatch 0
  }
  dist.program @evaluate {
    dist.call @"evaluate::1" microbatch 0
  }
}
