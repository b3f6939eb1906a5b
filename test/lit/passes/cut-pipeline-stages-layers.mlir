// RUN: ds-opt %s "--ds-cut-pipeline-stages=stages=1 schedule=accumulate-by-layer microbatches=2" | FileCheck %s
// RUN: ds-opt %s "--ds-cut-pipeline-stages=stages=2 schedule=accumulate-by-layer microbatches=2 partition=best" | FileCheck %s --check-prefix=TWO
// RUN: ds-opt %s "--ds-cut-pipeline-stages=stages=1 schedule=1f1b microbatches=2" | FileCheck %s --check-prefix=NONE

// Tests that each of three equal layers is a stage of the one rank, and that what takes little time behind them is a part of the last;
// that as many pieces are made as are asked for; that other schedules cut nothing on one rank.
// CHECK-LABEL: @microbatch
// CHECK:         train.matmul {{.*}}dist.pipeline_stage = 0
// CHECK:         train.matmul {{.*}}dist.pipeline_stage = 1
// CHECK:         train.matmul {{.*}}dist.pipeline_stage = 2
// CHECK:         train.reduce_sum {{.*}}dist.pipeline_stage = 2
// TWO-LABEL:   @microbatch
// TWO-NOT:       dist.pipeline_stage = 2
// TWO:           train.reduce_sum {{.*}}dist.pipeline_stage = 1
// NONE-NOT:    dist.pipeline_stage
module {
dist.mesh @mesh ["data", "pipe", "tensor"] [1, 1, 1]
train.variable parameter @u : tensor<512x512xf32> from #train.fill<0.0> {trainable}
train.variable parameter @v : tensor<512x512xf32> from #train.fill<0.0> {trainable}
train.variable parameter @w : tensor<512x512xf32> from #train.fill<0.0> {trainable}
train.variable metric @loss : tensor<f32>
func.func @microbatch(%x: tensor<64x512xf32> {train.input = "x"}) {
  %u = train.read @u : tensor<512x512xf32>
  %v = train.read @v : tensor<512x512xf32>
  %w = train.read @w : tensor<512x512xf32>
  %0 = train.matmul %x, %u : (tensor<64x512xf32>, tensor<512x512xf32>) -> tensor<64x512xf32>
  %1 = train.exp %0 : (tensor<64x512xf32>) -> tensor<64x512xf32>
  %2 = train.matmul %1, %v : (tensor<64x512xf32>, tensor<512x512xf32>) -> tensor<64x512xf32>
  %3 = train.exp %2 : (tensor<64x512xf32>) -> tensor<64x512xf32>
  %4 = train.matmul %3, %w : (tensor<64x512xf32>, tensor<512x512xf32>) -> tensor<64x512xf32>
  %5 = train.exp %4 : (tensor<64x512xf32>) -> tensor<64x512xf32>
  %loss = train.reduce_sum %5 over [0, 1] : (tensor<64x512xf32>) -> tensor<f32>
  train.accumulate %loss into @loss : tensor<f32>
  return
}
func.func @update() {
  return
}
func.func @evaluate(%x: tensor<64x512xf32> {train.input = "x"}) {
  return
}
}
