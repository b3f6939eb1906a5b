// RUN: ds-opt %s --ds-declare-mesh --ds-cut-pipeline-stages="stages=2 partition=best" --split-input-file | FileCheck %s
// RUN: ds-opt %s --ds-declare-mesh --ds-cut-pipeline-stages="stages=2 partition=uniform" --split-input-file | FileCheck %s --check-prefix=ANY
// RUN: ds-opt %s --ds-declare-mesh --ds-cut-pipeline-stages="stages=2 partition=parameters" --split-input-file | FileCheck %s --check-prefix=ANY

// ANY-COUNT-4: dist.pipeline_stage = 1

// Tests that the cut lies where one tensor crosses and the halves are equal; that the mask, which follows from an input, has no stage;
// that backward ops follow their forward op by name, and the sum of gradients at the cut runs where its terms are made; that a
// parameter which both stages read has its gradient added up in each; that evaluation is cut at the same op.
// CHECK-LABEL: func.func @microbatch
// CHECK:         train.greater %{{.*}} : (
// CHECK:         train.matmul %{{.*}} {dist.pipeline_stage = 0 : i64}
// CHECK:         train.add %{{.*}} {dist.pipeline_stage = 0 : i64}
// CHECK:         train.matmul %{{.*}} {dist.pipeline_stage = 1 : i64}
// CHECK:         train.select %{{.*}} {dist.pipeline_stage = 1 : i64}
// CHECK:         train.reduce_sum %{{.*}} {dist.pipeline_stage = 1 : i64}
// CHECK:         train.matmul %{{.*}} transposed {dist.pipeline_stage = 1 : i64}
// CHECK:         train.matmul %{{.*}} transposed, %{{.*}} {dist.pipeline_stage = 1 : i64}
// CHECK:         %[[T1:.*]] = train.reduce_sum %{{.*}} {dist.pipeline_stage = 1 : i64}
// CHECK:         train.add %{{.*}} {dist.pipeline_stage = 1 : i64} : (tensor<64x16xf32>, tensor<64x16xf32>)
// CHECK:         %[[T0:.*]] = train.reduce_sum %{{.*}} {dist.pipeline_stage = 0 : i64}
// CHECK:         train.matmul %{{.*}} transposed, %{{.*}} {dist.pipeline_stage = 0 : i64}
// CHECK:         train.accumulate %{{.*}} into @"v::gradient" {dist.pipeline_stage = 1 : i64}
// CHECK:         train.accumulate %{{.*}} into @"w::gradient" {dist.pipeline_stage = 0 : i64}
// CHECK-DAG:     train.accumulate %[[T1]] into @"t::gradient" {dist.pipeline_stage = 1 : i64}
// CHECK-DAG:     train.accumulate %[[T0]] into @"t::gradient" {dist.pipeline_stage = 0 : i64}
// CHECK-LABEL: func.func @evaluate
// CHECK:         train.matmul %{{.*}} {dist.pipeline_stage = 0 : i64}
// CHECK:         train.add %{{.*}} {dist.pipeline_stage = 0 : i64}
// CHECK:         train.matmul %{{.*}} {dist.pipeline_stage = 1 : i64}
// CHECK:         train.accumulate %{{.*}} into @loss {dist.pipeline_stage = 1 : i64}
train.variable parameter @w : tensor<16x16xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"w::gradient" of @w : tensor<16x16xf32>
train.variable parameter @v : tensor<16x16xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"v::gradient" of @v : tensor<16x16xf32>
train.variable parameter @t : tensor<16xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"t::gradient" of @t : tensor<16xf32>
train.variable metric @loss : tensor<f32>
func.func @microbatch(%x: tensor<64x16xf32> {train.input = "x"}, %y: tensor<1xf32> {train.input = "y"}) {
  %zero = train.constant dense<0.0> : tensor<f32>
  %mask = train.greater %y, %zero : (tensor<1xf32>, tensor<f32>) -> tensor<1xi1> loc("mask")
  %t = train.read @t : tensor<16xf32> loc("t")
  %w = train.read @w : tensor<16x16xf32> loc("w")
  %v = train.read @v : tensor<16x16xf32> loc("v")
  %0 = train.matmul %x, %w : (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32> loc("first")
  %1 = train.add %0, %t : (tensor<64x16xf32>, tensor<16xf32>) -> tensor<64x16xf32> loc("shift")
  %2 = train.matmul %1, %v : (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32> loc("second")
  %3 = train.add %2, %t : (tensor<64x16xf32>, tensor<16xf32>) -> tensor<64x16xf32> loc("shift_again")
  %4 = train.select %mask, %3, %1 : (tensor<1xi1>, tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32> loc("choose")
  %5 = train.reduce_sum %4 over [0, 1] : (tensor<64x16xf32>) -> tensor<f32> loc("loss")
  train.accumulate %5 into @loss : tensor<f32> loc("loss")
  %6 = train.loss_gradient 0.5 : tensor<f32>
  %7 = train.reshape %6 to [1, 1] : (tensor<f32>) -> tensor<1x1xf32>
  %8 = train.broadcast %7 to [64, 16] : (tensor<1x1xf32>) -> tensor<64x16xf32> loc("loss")
  %9 = train.select %mask, %8, %zero : (tensor<1xi1>, tensor<64x16xf32>, tensor<f32>) -> tensor<64x16xf32> loc("choose")
  %10 = train.select %mask, %zero, %8 : (tensor<1xi1>, tensor<f32>, tensor<64x16xf32>) -> tensor<64x16xf32> loc("choose")
  %12 = train.matmul %9, %v transposed : (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32> loc("second")
  %13 = train.matmul %1 transposed, %9 : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<16x16xf32> loc("second")
  %11 = train.reduce_sum %9 over [0] : (tensor<64x16xf32>) -> tensor<16xf32> loc("shift_again")
  %14 = train.add %10, %12 : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32> loc("shift")
  %15 = train.reduce_sum %14 over [0] : (tensor<64x16xf32>) -> tensor<16xf32> loc("shift")
  %16 = train.matmul %x transposed, %14 : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<16x16xf32> loc("first")
  train.accumulate %13 into @"v::gradient" : tensor<16x16xf32> loc("v")
  train.accumulate %16 into @"w::gradient" : tensor<16x16xf32> loc("w")
  %17 = train.add %11, %15 : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32> loc("t")
  train.accumulate %17 into @"t::gradient" : tensor<16xf32> loc("t")
  return
}
func.func @evaluate(%x: tensor<64x16xf32> {train.input = "x"}, %y: tensor<1xf32> {train.input = "y"}) {
  %t = train.read @t : tensor<16xf32> loc("t")
  %w = train.read @w : tensor<16x16xf32> loc("w")
  %v = train.read @v : tensor<16x16xf32> loc("v")
  %0 = train.matmul %x, %w : (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32> loc("first")
  %1 = train.add %0, %t : (tensor<64x16xf32>, tensor<16xf32>) -> tensor<64x16xf32> loc("shift")
  %2 = train.matmul %1, %v : (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32> loc("second")
  %5 = train.reduce_sum %2 over [0, 1] : (tensor<64x16xf32>) -> tensor<f32> loc("loss")
  train.accumulate %5 into @loss : tensor<f32> loc("loss")
  return
}

// -----

// Tests that stages which a user has written stay, and that ops between follow the one before.
// CHECK-LABEL: func.func @microbatch
// CHECK:         train.exp %{{.*}} {dist.pipeline_stage = 0 : i64}
// CHECK:         train.exp %{{.*}} {dist.pipeline_stage = 0 : i64}
// CHECK:         train.exp %{{.*}} {dist.pipeline_stage = 0 : i64}
// CHECK:         train.exp %{{.*}} {dist.pipeline_stage = 1 : i64}
// CHECK:         train.accumulate %{{.*}} into @loss {dist.pipeline_stage = 1 : i64}
train.variable metric @loss : tensor<f32>
func.func @microbatch(%x: tensor<f32> {train.input = "x"}) {
  %0 = train.exp %x {dist.pipeline_stage = 0 : i64} : (tensor<f32>) -> tensor<f32>
  %1 = train.exp %0 : (tensor<f32>) -> tensor<f32>
  %2 = train.exp %1 : (tensor<f32>) -> tensor<f32>
  %3 = train.exp %2 {dist.pipeline_stage = 1 : i64} : (tensor<f32>) -> tensor<f32>
  train.accumulate %3 into @loss : tensor<f32>
  return
}
func.func @evaluate(%x: tensor<f32> {train.input = "x"}) {
  return
}

// -----

// Tests that a backward op follows the op whose gradient it is, though a cast of that op's result behind the cut has its name; and that a
// gradient is added up where its parameter is read, though its name is that of an op in front. An evaluation reads it there, too.
// CHECK-LABEL: func.func @microbatch
// CHECK:         train.cast %{{.*}} to f32 {dist.pipeline_stage = 1 : i64}
// CHECK:         train.mul {{.*}}dist.pipeline_stage = 1 : i64
// CHECK:         %[[V:.*]] = train.neg {{.*}}dist.pipeline_stage = 1 : i64
// CHECK:         train.accumulate %[[V]] into @"v::gradient" {dist.pipeline_stage = 1 : i64}
// CHECK:         train.cast %{{.*}} to bf16 {dist.pipeline_stage = 1 : i64}
// CHECK:         %[[W:.*]] = train.cast %{{.*}} to f32 {dist.pipeline_stage = 0 : i64}
// CHECK:         train.accumulate %[[W]] into @"w::gradient" {dist.pipeline_stage = 0 : i64}
// CHECK-LABEL: func.func @evaluate
// CHECK:         train.exp %{{.*}} {dist.pipeline_stage = 0 : i64}
// CHECK:         train.reduce_sum %{{.*}} {dist.pipeline_stage = 1 : i64}
train.variable parameter @w : tensor<4xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"w::gradient" of @w : tensor<4xf32>
train.variable parameter @v : tensor<4xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"v::gradient" of @v : tensor<4xf32>
train.variable metric @loss : tensor<f32>
func.func @microbatch(%x: tensor<4xbf16> {train.input = "x"}) {
  %w = train.read @w : tensor<4xf32>
  %v = train.read @v : tensor<4xf32>
  %low = train.cast %w to bf16 {dist.pipeline_stage = 0 : i64} : (tensor<4xf32>) -> tensor<4xbf16> loc("w")
  %0 = train.mul %x, %low {dist.pipeline_stage = 0 : i64} : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16> loc("scale")
  %1 = train.cast %0 to f32 {dist.pipeline_stage = 1 : i64} : (tensor<4xbf16>) -> tensor<4xf32> loc("scale")
  %2 = train.mul %1, %v : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("again")
  %3 = train.reduce_sum %2 over [0] : (tensor<4xf32>) -> tensor<f32> loc("loss")
  train.accumulate %3 into @loss : tensor<f32> loc("loss")
  %4 = train.loss_gradient 1.0 : tensor<f32>
  %5 = train.mul %1, %4 : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> loc("again")
  %6 = train.neg %5 : (tensor<4xf32>) -> tensor<4xf32> loc("scale")
  train.accumulate %6 into @"v::gradient" : tensor<4xf32>
  %7 = train.cast %5 to bf16 : (tensor<4xf32>) -> tensor<4xbf16> loc("scale")
  %8 = train.mul %7, %x : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16> loc("scale")
  %9 = train.cast %8 to f32 : (tensor<4xbf16>) -> tensor<4xf32> loc("scale")
  train.accumulate %9 into @"w::gradient" : tensor<4xf32>
  return
}
func.func @evaluate(%x: tensor<4xbf16> {train.input = "x"}) {
  %w = train.read @w : tensor<4xf32>
  %0 = train.exp %w : (tensor<4xf32>) -> tensor<4xf32> loc("again")
  %1 = train.reduce_sum %0 over [0] : (tensor<4xf32>) -> tensor<f32> loc("loss")
  train.accumulate %1 into @loss : tensor<f32> loc("loss")
  return
}
