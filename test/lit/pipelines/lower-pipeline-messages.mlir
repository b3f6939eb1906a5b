// RUN: ds-opt %s --ds-lower-pipeline --split-input-file | FileCheck %s

// Tests messages: a queue for each channel; what is sent waits for the command that computes it and has two slots, of which the one that
// is written next must have been sent; a receive waits until its slot was read last, who reads it first waits for the receive.
// CHECK:       plan.channel @"forward::0-1" axis 0 from 0 to 1
// CHECK-LABEL: plan.role @stage0
// CHECK:         plan.queue @"forward::0-1" kind message
// CHECK-NEXT:    plan.event @"forward::0-1::sent"
// CHECK:         %[[Y:.*]] = plan.buffer "y" {{.*}} scope slot category activations slots 2
// CHECK:         plan.routine @"forward::0" phase forward stage 0 {
// CHECK-NEXT:      plan.kernel "elementwise" {{.*}} on @compute wait [@"forward::0-1::sent"] [2]{{$}}
// CHECK-NEXT:      plan.kernel "elementwise" {{.*}} on @compute signal [@ready_0]
// CHECK-NEXT:      plan.send @"forward::0-1"(%[[Y]]) : [tensor<4xf32>] access [1] at [0] on @"forward::0-1" wait [@ready_0] [0] signal [@"forward::0-1::sent"]
// CHECK-NEXT:    }
// CHECK-LABEL: plan.role @stage1
// CHECK:         plan.queue @"forward::0-1" kind message
// CHECK-NEXT:    plan.event @"forward::0-1::received"
// CHECK-NEXT:    plan.event @"forward::0-1::taken"
// CHECK:         %[[R:.*]] = plan.buffer "y" {{.*}} slots 2
// CHECK:         plan.routine @"receive::forward::1" phase receive stage 1 {
// CHECK-NEXT:      plan.receive @"forward::0-1"(%[[R]]) : [tensor<4xf32>] access [2] at [0] on @"forward::0-1" wait [@"forward::0-1::taken"] [2] signal [@"forward::0-1::received"]
// CHECK:         plan.routine @"forward::1" phase forward stage 1 {
// CHECK-NEXT:      plan.kernel "elementwise" {{.*}} on @compute{{$}}
// CHECK-NEXT:      plan.kernel "elementwise" {{.*}} on @compute wait [@"forward::0-1::received"] [0] signal [@"forward::0-1::taken"]
dist.mesh @mesh ["pipe"] [2]
train.variable parameter @w : tensor<4xf32> from #train.fill<0.0> {trainable}
train.variable gradient @g : tensor<4xf32>
dist.channel @"forward::0-1" axis "pipe" from 0 to 1
dist.value @y : tensor<4xf32>
dist.fragment @"forward::0" phase forward stage 0 {
  %w = train.read @w : tensor<4xf32>
  %0 = train.exp %w : (tensor<4xf32>) -> tensor<4xf32>
  %1 = train.exp %0 : (tensor<4xf32>) -> tensor<4xf32>
  dist.store %1 as @y : tensor<4xf32>
  dist.send %1 on @"forward::0-1" : tensor<4xf32>
}
dist.fragment @"receive::forward::1" phase receive stage 1 for @"forward::1" {
  dist.receive [@y] on @"forward::0-1"
}
dist.fragment @"forward::1" phase forward stage 1 {
  %w = train.read @w : tensor<4xf32>
  %0 = train.exp %w : (tensor<4xf32>) -> tensor<4xf32>
  %y = dist.load @y : tensor<4xf32>
  %1 = train.mul %0, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  train.store %1 into @g : tensor<4xf32>
}
dist.role @stage0 ranks [0, 0] {
  dist.program @step {
    dist.call @"forward::0" microbatch 0
    dist.call @"forward::0" microbatch 1
    dist.call @"forward::0" microbatch 2
  }
}
dist.role @stage1 ranks [1, 1] {
  dist.program @step {
    dist.call @"receive::forward::1" microbatch 0
    dist.call @"receive::forward::1" microbatch 1
    dist.call @"forward::1" microbatch 0
    dist.call @"receive::forward::1" microbatch 2
    dist.call @"forward::1" microbatch 1
    dist.call @"forward::1" microbatch 2
  }
}

// -----

// Tests that of two messages with one value the second waits for the first: the value's life ends with one command.
// CHECK-LABEL: plan.role @stage0
// CHECK:         plan.routine @"forward::0" phase forward stage 0 {
// CHECK-NEXT:      plan.kernel
// CHECK-NEXT:      plan.send @near({{.*}} wait [@ready_0] [0] signal [@"near::sent"]
// CHECK-NEXT:      plan.send @far({{.*}} wait [@ready_0, @"near::sent"] [0, 0] signal [@"far::sent"]
dist.mesh @mesh ["pipe"] [3]
train.variable parameter @w : tensor<4xf32> from #train.fill<0.0> {trainable}
dist.channel @near axis "pipe" from 0 to 1
dist.channel @far axis "pipe" from 0 to 2
dist.value @y : tensor<4xf32>
dist.fragment @"forward::0" phase forward stage 0 {
  %w = train.read @w : tensor<4xf32>
  %0 = train.exp %w : (tensor<4xf32>) -> tensor<4xf32>
  dist.store %0 as @y : tensor<4xf32>
  dist.send %0 on @near : tensor<4xf32>
  dist.send %0 on @far : tensor<4xf32>
}
dist.role @stage0 ranks [0, 0] {
  dist.program @step {
    dist.call @"forward::0" microbatch 0
  }
}

// -----

// Tests that what is received once a step waits for the compute called before it, so that others may have its bytes until then; what is
// received for each micro-batch waits for its slot alone.
// CHECK-LABEL: plan.role @stage1
// CHECK:         plan.routine @"receive::forward::1" phase receive stage 1 {
// CHECK-NEXT:      plan.receive @each({{.*}} wait [@"each::taken"] [2] signal [@"each::received"]
// CHECK:         plan.routine @"forward::1" phase forward stage 1 {
// CHECK-NEXT:      plan.kernel {{.*}} wait [@"each::received"] [0] signal [@"each::taken", @"once::taken"]
// CHECK:         plan.routine @"receive::update::1" phase receive {
// CHECK-NEXT:      plan.receive @once({{.*}} wait [@"once::taken"] [0] signal [@"once::received"]
// CHECK:         plan.routine @"update::1" phase update {
// CHECK-NEXT:      plan.kernel {{.*}} wait [@"once::received"] [0]
dist.mesh @mesh ["pipe"] [2]
train.variable gradient @g : tensor<4xf32>
dist.channel @each axis "pipe" from 0 to 1
dist.channel @once axis "pipe" from 0 to 1
dist.value @x : tensor<4xf32>
dist.value @y : tensor<4xf32>
dist.fragment @"receive::forward::1" phase receive stage 1 for @"forward::1" {
  dist.receive [@x] on @each
}
dist.fragment @"forward::1" phase forward stage 1 {
  %x = dist.load @x : tensor<4xf32>
  train.accumulate %x into @g : tensor<4xf32>
}
dist.fragment @"receive::update::1" phase receive pipe 1 for @"update::1" {
  dist.receive [@y] on @once
}
dist.fragment @"update::1" phase update pipe 1 {
  %y = dist.load @y : tensor<4xf32>
  train.accumulate %y into @g : tensor<4xf32>
}
dist.role @stage1 ranks [1, 1] {
  dist.program @step {
    dist.call @"receive::forward::1" microbatch 0
    dist.call @"receive::forward::1" microbatch 1
    dist.call @"forward::1" microbatch 0
    dist.call @"receive::forward::1" microbatch 2
    dist.call @"forward::1" microbatch 1
    dist.call @"forward::1" microbatch 2
    dist.call @"receive::update::1" microbatch 2
    dist.call @"update::1" microbatch 2
  }
}
