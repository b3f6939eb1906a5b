// RUN: ds-opt %s --ds-lower-pipeline=threads=2 --split-input-file | FileCheck %s

// Tests events and slots: a feed waits until the slot of two micro-batches before is free and signals once, the first command that uses
// an input waits, the last command of the last fragment that takes one frees the slot; inputs that are fed ahead have two copies,
// kept values one; reshapes and reads are views.
// CHECK:       plan.input "x" : tensor<2x2xf32> limit 9
// CHECK-NEXT:  plan.input "y" : tensor<4xf32>{{$}}
// CHECK-NOT:   dist.value
// CHECK-NOT:   dist.fragment
// CHECK:       plan.role @main ranks [0, 0] {
// CHECK-NEXT:    plan.arena @device space device
// CHECK-NEXT:    plan.queue @compute kind compute
// CHECK-NEXT:    plan.queue @copy_in kind copy_in
// CHECK-NEXT:    plan.event @input_ready
// CHECK-NEXT:    plan.event @input_done
// CHECK-DAG:         %[[X:.*]] = plan.buffer "x" in @device bytes 16 scope slot category inputs slots 2
// CHECK-DAG:         %[[Y:.*]] = plan.buffer "y" in @device bytes 16 scope slot category inputs slots 2
// CHECK-LABEL:   plan.routine @feed phase feed stage 0 {
// CHECK-NEXT:      plan.feed "x"(%[[X]]) : [tensor<2x2xf32>] access [2] at [0] on @copy_in wait [@input_done] [2]{{$}}
// CHECK-NEXT:      plan.feed "y"(%[[Y]]) : [tensor<4xf32>] access [2] at [0] on @copy_in wait [@input_done] [2] signal [@input_ready]
// CHECK-DAG:     %[[H:.*]] = plan.buffer "h" in @device bytes 16 scope slot category activations slots 1
// CHECK-DAG:     %[[W:.*]] = plan.buffer "w" in @device bytes 16 scope plan category weights slots 1 of @w
// CHECK-LABEL:   plan.routine @forward phase forward stage 0 {
// CHECK-NEXT:      plan.kernel "elementwise" {{.*}}(%[[X]], %[[W]], %[[H]]) : [tensor<4xf32>, tensor<4xf32>, tensor<4xf32>] access [1, 1, 2] at [0, 0, 0] on @compute wait [@input_ready] [0] reference [7]
// CHECK-DAG:         %[[G:.*]] = plan.buffer "w::gradient" in @device bytes 16 scope step category gradients slots 1
// CHECK-LABEL:   plan.routine @backward phase backward stage 0 {
// CHECK:           plan.kernel "elementwise" {{.*}}(%[[H]], %[[Y]], %[[H]]) {{.*}} on @compute wait [@input_ready] [0]{{$}}
// CHECK-NEXT:      plan.kernel "elementwise" {{.*}}(%[[G]], %{{.*}}, %[[G]]) {{.*}} access [1, 1, 2] {{.*}} signal [@input_done]
// CHECK-LABEL:   plan.routine @begin_step phase begin {
// CHECK-NEXT:      plan.fill(%[[G]]) : [tensor<4xf32>] access [2] at [0] on @compute
// CHECK-NEXT:    }
// CHECK-NEXT:    plan.program "step" {
// CHECK-NEXT:      plan.call @begin_step microbatch 0
// CHECK-NEXT:      plan.call @feed microbatch 0
// CHECK-NEXT:      plan.call @feed microbatch 1
// CHECK-NEXT:      plan.call @forward microbatch 0
// CHECK-NEXT:      plan.call @backward microbatch 0
train.variable parameter @w : tensor<4xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"w::gradient" of @w : tensor<4xf32>
dist.value @x : tensor<2x2xf32> input "x" {train.limit = 9 : i64}
dist.value @y : tensor<4xf32> input "y"
dist.value @h : tensor<4xf32>
dist.fragment @feed phase feed stage 0 {
  dist.feed @x
  dist.feed @y
}
dist.fragment @forward phase forward stage 0 {
  %x = dist.load @x : tensor<2x2xf32>
  %flat = train.reshape %x to [4] : (tensor<2x2xf32>) -> tensor<4xf32>
  %w = train.read @w : tensor<4xf32>
  %0 = train.mul %flat, %w {train.reference = array<i64: 7>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  dist.store %0 as @h : tensor<4xf32>
}
dist.fragment @backward phase backward stage 0 {
  %y = dist.load @y : tensor<4xf32>
  %h = dist.load @h : tensor<4xf32>
  %0 = train.mul %h, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  train.accumulate %0 into @"w::gradient" : tensor<4xf32>
}
dist.role @main ranks [0, 0] {
  dist.program @step {
    dist.call @feed microbatch 0
    dist.call @feed microbatch 1
    dist.call @forward microbatch 0
    dist.call @backward microbatch 0
    dist.call @forward microbatch 1
    dist.call @backward microbatch 1
  }
}

// -----

// Tests that a gradient that is stored is written in place, through a reshape too, and that constants have a variable while
// splats go into the program.
// CHECK-LABEL: plan.routine @backward phase backward stage 0 {
// CHECK-NEXT:    plan.kernel "transpose" {perm = array<i64: 1, 0>}(%{{.*}}, %[[A:.*]]) : [tensor<2x3xf32>, tensor<3x2xf32>]
// CHECK-NEXT:    plan.kernel "elementwise" {constants = array<f64: 2.000000e+00>,{{.*}}}(%[[A]], %[[B:.*]]) : [tensor<3x2xf32>, tensor<3x2xf32>]
// CHECK-NOT:     plan.kernel
// CHECK:       plan.program
// CHECK:       train.variable constant @"constant::1" : tensor<2x3xf32> from #train.literal<dense<
train.variable gradient @a : tensor<6xf32>
train.variable gradient @b : tensor<3x2xf32>
dist.fragment @backward phase backward stage 0 {
  %0 = train.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %1 = train.transpose %0 by [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %2 = train.reshape %1 to [6] : (tensor<3x2xf32>) -> tensor<6xf32>
  train.store %2 into @a : tensor<6xf32>
  %two = train.constant dense<2.0> : tensor<f32>
  %3 = train.mul %1, %two : (tensor<3x2xf32>, tensor<f32>) -> tensor<3x2xf32>
  train.store %3 into @b : tensor<3x2xf32>
}
dist.role @main ranks [0, 0] {
  dist.program @step {
    dist.call @backward microbatch 0
  }
}

// -----

// Tests that a value stored twice is written once and copied, and one that is kept and stored is copied from where it is kept.
// CHECK-LABEL: module
// CHECK-DAG:       %[[H:.*]] = plan.buffer "h"
// CHECK-DAG:       %[[A:.*]] = plan.buffer "a"
// CHECK-DAG:       %[[B:.*]] = plan.buffer "b"
// CHECK-DAG:       %[[C:.*]] = plan.buffer "c"
// CHECK-LABEL: plan.routine @forward phase forward stage 0 {
// CHECK-NEXT:    plan.kernel "elementwise" {{.*}}(%{{.*}}, %[[A]]) {{.*}} access [1, 2]
// CHECK-NEXT:    plan.kernel "elementwise" {{.*}}(%[[A]], %[[B]]) {{.*}} access [1, 2]
// CHECK-NEXT:    plan.kernel "elementwise" {{.*}}(%[[A]], %[[H]]) {{.*}} access [1, 2]
// CHECK-NEXT:    plan.kernel "elementwise" {{.*}}(%[[H]], %[[C]]) {{.*}} access [1, 2]
// CHECK-NEXT:  }
train.variable parameter @w : tensor<f32> from #train.fill<0.0>
train.variable metric @a : tensor<f32>
train.variable metric @b : tensor<f32>
train.variable metric @c : tensor<f32>
dist.value @h : tensor<f32>
dist.fragment @forward phase forward stage 0 {
  %w = train.read @w : tensor<f32>
  %0 = train.exp %w : (tensor<f32>) -> tensor<f32>
  train.store %0 into @a : tensor<f32>
  train.store %0 into @b : tensor<f32>
  %1 = train.neg %0 : (tensor<f32>) -> tensor<f32>
  dist.store %1 as @h : tensor<f32>
  train.store %1 into @c : tensor<f32>
}
dist.role @main ranks [0, 0] {
  dist.program @step {
    dist.call @forward microbatch 0
  }
}

// -----

// Tests that a variable that is stored twice holds what was stored last, whatever was computed first.
// CHECK-LABEL: module
// CHECK-DAG:       %[[EXP:.*]] = plan.buffer "elementwise"
// CHECK-DAG:       %[[A:.*]] = plan.buffer "a"
// CHECK-LABEL: plan.routine @forward
// CHECK-NEXT:    plan.kernel "elementwise" {{.*}}(%{{.*}}, %[[EXP]])
// CHECK-NEXT:    plan.kernel "elementwise" {{.*}}(%{{.*}}, %[[A]])
// CHECK-NEXT:    plan.kernel "elementwise" {{.*}}(%[[EXP]], %[[A]])
train.variable parameter @w : tensor<f32> from #train.fill<0.0>
train.variable metric @a : tensor<f32>
dist.fragment @forward phase forward stage 0 {
  %w = train.read @w : tensor<f32>
  %0 = train.exp %w : (tensor<f32>) -> tensor<f32>
  %1 = train.neg %w : (tensor<f32>) -> tensor<f32>
  train.store %1 into @a : tensor<f32>
  train.store %0 into @a : tensor<f32>
}
dist.role @main ranks [0, 0] {
  dist.program @step {
    dist.call @forward microbatch 0
  }
}

// -----

// Tests that a stored value does not overwrite a gradient before the optimizer has read it by name.
// CHECK-LABEL: module
// CHECK-DAG:       %[[EXP:.*]] = plan.buffer "elementwise"
// CHECK-DAG:       %[[G:.*]] = plan.buffer "g"
// CHECK-LABEL: plan.routine @update phase update {
// CHECK-NEXT:    plan.kernel "elementwise" {{.*}}(%[[EXP]])
// CHECK-NEXT:    plan.kernel "sgd" {{.*}}(%{{.*}}, %[[G]], %{{.*}}, %{{.*}}, %{{.*}})
// CHECK-NEXT:    plan.kernel "elementwise" {{.*}}(%[[EXP]], %[[G]])
train.variable parameter @w : tensor<f32> from #train.fill<0.0>
train.variable gradient @g : tensor<f32>
dist.fragment @update phase update pipe 0 {
  %f = train.constant dense<1.0> : tensor<f64>
  %i = train.constant dense<1> : tensor<i64>
  %c = train.constant dense<1.0> : tensor<f32>
  %0 = train.exp %c : (tensor<f32>) -> tensor<f32>
  train.sgd @w gradient @g rate %f step %i clip %f {momentum = 0.0, nesterov = false, weight_decay = 0.0} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  train.store %0 into @g : tensor<f32>
}
dist.role @main ranks [0, 0] {
  dist.program @step {
    dist.call @update microbatch 0
  }
}

// -----

// Tests that a read is copied where the variable is written before its last use, reshaped or not; a last use before is none.
// CHECK-LABEL: module
// CHECK-DAG:       %[[OLD:.*]] = plan.buffer "mean" in @device bytes 8 scope call
// CHECK-DAG:       %[[MEAN:.*]] = plan.buffer "mean" in @device bytes 8 scope plan
// CHECK-LABEL: plan.routine @forward phase forward stage 0 {
// CHECK-NEXT:    plan.kernel "elementwise" {{.*}}(%[[MEAN]], %[[OLD]]) {{.*}} access [1, 2]
// CHECK-NEXT:    plan.kernel "elementwise" {{.*}}(%[[STEP:.*]], %{{.*}})
// CHECK-NEXT:    plan.kernel "elementwise" {{.*}}(%{{.*}}, %[[MEAN]])
// CHECK-NEXT:    plan.kernel "increment" {}(%[[STEP]])
// CHECK-NEXT:    plan.kernel "elementwise" {{.*}}(%[[OLD]], %{{.*}}) : [tensor<1x2xf32>, tensor<1x2xf32>]
train.variable buffer @mean : tensor<2xf32> from #train.fill<0.0>
train.variable optimizer @step : tensor<i64> from #train.fill<0.0>
dist.fragment @forward phase forward stage 0 {
  %old = train.read @mean : tensor<2xf32>
  %row = train.reshape %old to [1, 2] : (tensor<2xf32>) -> tensor<1x2xf32>
  %step = train.read @step : tensor<i64>
  %f = train.cast %step to f32 : (tensor<i64>) -> tensor<f32>
  %c = train.constant dense<1.0> : tensor<2xf32>
  train.store %c into @mean : tensor<2xf32>
  train.increment @step
  %0 = train.exp %row : (tensor<1x2xf32>) -> tensor<1x2xf32>
}
dist.role @main ranks [0, 0] {
  dist.program @step {
    dist.call @forward microbatch 0
  }
}

// -----

// Tests that a kept read is copied into the kept value.
// CHECK-LABEL: module
// CHECK-DAG:       %[[H:.*]] = plan.buffer "h"
// CHECK-DAG:       %[[W:.*]] = plan.buffer "w"
// CHECK-LABEL: plan.routine @forward phase forward stage 0 {
// CHECK-NEXT:    plan.kernel "elementwise" {{.*}}(%[[W]], %[[H]]) {{.*}} access [1, 2]
train.variable parameter @w : tensor<f32> from #train.fill<0.0>
dist.value @h : tensor<f32>
dist.fragment @forward phase forward stage 0 {
  %w = train.read @w : tensor<f32>
  dist.store %w as @h : tensor<f32>
}
dist.role @main ranks [0, 0] {
  dist.program @step {
    dist.call @forward microbatch 0
  }
}

// -----

// Tests the workspace of a gradient, the seed of the gradient as a constant, and the kernels that a fused loop and metrics become.
// CHECK-LABEL: module
// CHECK-DAG:         %[[WS:.*]] = plan.buffer "layer_norm_grad workspace" in @device bytes [[BYTES:[0-9]+]] scope call category workspace slots 1
// CHECK-LABEL: plan.routine @forward phase forward stage 0 {
// CHECK-NEXT:    plan.kernel "matmul" {bias = 0 : i64, pieces = 2 : i64, trans_a = 1 : i64, trans_b = 0 : i64}(%{{.*}}, %{{.*}}, %{{.*}}) : [tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>] access [1, 1, 2]
// Registers: 0 the product, 1 = constant 0 (-0.5), 2 = register 0 * register 1, 3 = exp of register 2; opcodes 0, 12, 55; f32 is 7.
// CHECK-NEXT:    plan.kernel "elementwise" {constants = array<f64: -5.000000e-01>, program = array<i64: 0, 7, 0, -1, -1, 12, 7, 0, 1, -1, 55, 7, 2, -1, -1>, results = array<i64: 2, 3>}
// CHECK-NEXT:    plan.kernel "reduce_sum" {axes = array<i64: 0, 1>}(%{{.*}}, %[[LOSS:.*]]) : [tensor<2x2xf32>, tensor<f32>]
// CHECK-NEXT:    plan.kernel "layer_norm_grad" {}({{.*}}, %[[WS]]) : [{{.*}}, tensor<[[BYTES]]xi8>] access [1, 1, 1, 1, 1, 2, 2, 2, 4]
// CHECK:       plan.program "step" {
// CHECK-NEXT:    plan.call @forward microbatch 0
// CHECK-NEXT:    plan.metric "loss" %[[LOSS]] : tensor<f32>
// CHECK:       train.variable constant @"constant::2" : tensor<f32> from #train.literal<dense<2.500000e-01> : tensor<f32>>
train.variable parameter @w : tensor<2x2xf32> from #train.fill<0.0>
train.variable metric @loss : tensor<f32>
train.variable metric @seed : tensor<f32>
dist.fragment @forward phase forward stage 0 {
  %w = train.read @w : tensor<2x2xf32>
  %0 = train.matmul %w transposed, %w : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1:2 = train.fused %0 {
  ^bb0(%a: tensor<2x2xf32>):
    %half = train.constant dense<-0.5> : tensor<f32>
    %2 = train.mul %a, %half : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
    %3 = train.exp %2 : (tensor<2x2xf32>) -> tensor<2x2xf32>
    train.yield %2, %3 : tensor<2x2xf32>, tensor<2x2xf32>
  } : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>)
  %4 = train.reduce_sum %1#1 over [0, 1] : (tensor<2x2xf32>) -> tensor<f32>
  train.store %4 into @loss : tensor<f32>
  %row = train.constant dense<1.0> : tensor<2xf32>
  %6:3 = train.layer_norm_grad %0, %w, %row, %row, %row : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>)
  %5 = train.loss_gradient 0.25 : tensor<f32>
  train.store %5 into @seed : tensor<f32>
}
dist.role @main ranks [0, 0] {
  dist.program @step {
    dist.call @forward microbatch 0
  }
}

// -----

// Tests that the gradient of logits that nothing reads afterwards is written over them, and only of those.
// CHECK-LABEL: plan.role @main
// CHECK-DAG:     %[[LAST:.*]] = plan.buffer "last"
// CHECK-DAG:     %[[MORE:.*]] = plan.buffer "more"
// CHECK-LABEL:   plan.routine @backward phase backward stage 0 {
// CHECK-NEXT:      plan.kernel "cross_entropy_grad" {{{.*}}}(%[[LAST]], %{{.*}}, %{{.*}}, %{{.*}}, %[[LAST]])
// CHECK-NOT:       plan.kernel "cross_entropy_grad" {{{.*}}}(%[[MORE]], %{{.*}}, %{{.*}}, %{{.*}}, %[[MORE]])
// CHECK:           plan.kernel "cross_entropy_grad" {{{.*}}}(%[[MORE]],
train.variable parameter @w : tensor<4x3xf32> from #train.fill<0.0>
train.variable metric @b : tensor<4x3xf32>
dist.value @labels : tensor<4xi64> input "labels"
dist.value @last : tensor<2x6xf32>
dist.value @more : tensor<4x3xf32>
dist.value @lse : tensor<4xf32>
dist.fragment @forward phase forward stage 0 {
  %w = train.read @w : tensor<4x3xf32>
  %labels = dist.load @labels : tensor<4xi64>
  %0 = train.exp %w : (tensor<4x3xf32>) -> tensor<4x3xf32>
  dist.store %0 as @more : tensor<4x3xf32>
  %1 = train.reshape %w to [2, 6] : (tensor<4x3xf32>) -> tensor<2x6xf32>
  %2 = train.exp %1 : (tensor<2x6xf32>) -> tensor<2x6xf32>
  dist.store %2 as @last : tensor<2x6xf32>
  %loss, %lse = train.cross_entropy sum %0, %labels ignore -1 : (tensor<4x3xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>)
  dist.store %lse as @lse : tensor<4xf32>
}
dist.fragment @backward phase backward stage 0 {
  %g = train.loss_gradient 1.0 : tensor<f32>
  %labels = dist.load @labels : tensor<4xi64>
  %lse = dist.load @lse : tensor<4xf32>
  %last = dist.load @last : tensor<2x6xf32>
  %more = dist.load @more : tensor<4x3xf32>
  %0 = train.reshape %last to [4, 3] : (tensor<2x6xf32>) -> tensor<4x3xf32>
  %1 = train.cross_entropy_grad sum %0, %labels, %lse, %g ignore -1 : (tensor<4x3xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>) -> tensor<4x3xf32>
  %2 = train.cross_entropy_grad sum %more, %labels, %lse, %g ignore -1 : (tensor<4x3xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>) -> tensor<4x3xf32>
  %3 = train.add %1, %2 : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %4 = train.add %3, %more : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  train.store %4 into @b : tensor<4x3xf32>
}
dist.role @main ranks [0, 0] {
  dist.program @step {
    dist.call @forward microbatch 0
    dist.call @backward microbatch 0
  }
}

// -----

// Tests that inputs that nobody reads are fed all the same, and wait for nobody.
// CHECK-LABEL: plan.role @main
// CHECK:           plan.feed "x"{{.*}} on @copy_in signal [@input_ready]
// CHECK-LABEL:   plan.routine @backward
// CHECK-NEXT:    }
// CHECK:           plan.feed "y"{{.*}} on @copy_in signal [@"input_ready::1"]
dist.value @x : tensor<2xf32> input "x"
dist.value @y : tensor<2xf32> input "y"
dist.fragment @feed phase feed stage 0 {
  dist.feed @x
}
dist.fragment @backward phase backward stage 0 {
  %x = dist.load @x : tensor<2xf32>
}
dist.fragment @"feed::1" phase feed stage 1 {
  dist.feed @y
}
dist.role @main ranks [0, 0] {
  dist.program @step {
    dist.call @feed microbatch 0
    dist.call @backward microbatch 0
    dist.call @"feed::1" microbatch 0
  }
}
