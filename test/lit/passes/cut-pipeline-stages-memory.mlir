// RUN: ds-opt %s --ds-declare-mesh=pipe=2 --ds-cut-pipeline-stages="stages=2 microbatches=4 partition=best schedule=1f1b" | FileCheck %s --check-prefix=TIME
// RUN: ds-opt %s --ds-declare-mesh=pipe=2 --ds-cut-pipeline-stages="stages=2 microbatches=4 partition=best schedule=1f1b memory=30000 state-bytes=1" | FileCheck %s --check-prefix=FITS
// RUN: ds-opt %s --ds-declare-mesh=pipe=2 --ds-cut-pipeline-stages="stages=2 microbatches=4 partition=best schedule=1f1b memory=20000 state-bytes=1" | FileCheck %s --check-prefix=TIME

// Tests that memory moves the cut: the backward reads the 16,384 bytes that "widen" makes, of which the first stage has two
// micro-batches in flight, the second one. By time the first three products stand against the last and the loss; within 30,000 bytes
// only the first product fits before "widen". Nothing fits into 20,000, and an estimate refuses nothing.
// TIME:      train.matmul %{{.*}} {dist.pipeline_stage = 0 : i64}
// TIME-NEXT: train.matmul %{{.*}} {dist.pipeline_stage = 0 : i64}
// TIME-NEXT: train.matmul %{{.*}} {dist.pipeline_stage = 0 : i64}
// TIME-NEXT: train.matmul %{{.*}} {dist.pipeline_stage = 1 : i64}
// FITS:      train.matmul %{{.*}} {dist.pipeline_stage = 0 : i64}
// FITS-NEXT: train.matmul %{{.*}} {dist.pipeline_stage = 1 : i64}
// FITS-NEXT: train.matmul %{{.*}} {dist.pipeline_stage = 1 : i64}
// FITS-NEXT: train.matmul %{{.*}} {dist.pipeline_stage = 1 : i64}
train.variable metric @loss : tensor<f32>
train.variable parameter @a : tensor<16x16xf32> from #train.fill<0.0> {trainable}
train.variable parameter @b : tensor<16x64xf32> from #train.fill<0.0> {trainable}
train.variable parameter @c : tensor<64x16xf32> from #train.fill<0.0> {trainable}
train.variable parameter @d : tensor<16x16xf32> from #train.fill<0.0> {trainable}
func.func @microbatch(%x: tensor<64x16xf32> {train.input = "x"}) {
  %a = train.read @a : tensor<16x16xf32>
  %b = train.read @b : tensor<16x64xf32>
  %c = train.read @c : tensor<64x16xf32>
  %d = train.read @d : tensor<16x16xf32>
  %0 = train.matmul %x, %a : (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32> loc("first")
  %1 = train.matmul %0, %b : (tensor<64x16xf32>, tensor<16x64xf32>) -> tensor<64x64xf32> loc("widen")
  %2 = train.matmul %1, %c : (tensor<64x64xf32>, tensor<64x16xf32>) -> tensor<64x16xf32> loc("narrow")
  %3 = train.matmul %2, %d : (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32> loc("last")
  %4 = train.reduce_sum %3 over [0, 1] : (tensor<64x16xf32>) -> tensor<f32> loc("loss")
  train.accumulate %4 into @loss : tensor<f32> loc("loss")
  %5 = train.loss_gradient 0.5 : tensor<f32>
  %6 = train.reshape %5 to [1, 1] : (tensor<f32>) -> tensor<1x1xf32>
  %7 = train.broadcast %6 to [64, 64] : (tensor<1x1xf32>) -> tensor<64x64xf32> loc("loss")
  %8 = train.mul %7, %1 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("widen")
  %9 = train.reduce_sum %8 over [0, 1] : (tensor<64x64xf32>) -> tensor<f32> loc("widen")
  train.accumulate %9 into @loss : tensor<f32> loc("widen")
  return
}
func.func @evaluate(%x: tensor<64x16xf32> {train.input = "x"}) {
  return
}
