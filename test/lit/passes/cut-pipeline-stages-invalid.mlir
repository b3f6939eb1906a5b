// RUN: split-file %s %t
// RUN: not ds-opt %t/functions.mlir --ds-declare-mesh --ds-cut-pipeline-stages="stages=2 partition=best" 2>&1 | FileCheck %s --check-prefix=FUNCTIONS
// RUN: not ds-opt %t/short.mlir --ds-declare-mesh --ds-cut-pipeline-stages="stages=0 partition=best" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not ds-opt %t/short.mlir --ds-declare-mesh --ds-cut-pipeline-stages="stages=5 partition=best" 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not ds-opt %t/gap.mlir --ds-declare-mesh --ds-cut-pipeline-stages="stages=2 partition=best" 2>&1 | FileCheck %s --check-prefix=GAP
// RUN: not ds-opt %t/state.mlir --ds-declare-mesh --ds-cut-pipeline-stages="stages=2 partition=best" 2>&1 | FileCheck %s --check-prefix=STATE
// RUN: not ds-opt %t/twice.mlir --ds-declare-mesh --ds-cut-pipeline-stages="stages=2 partition=best" 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not ds-opt %t/hand.mlir --ds-declare-mesh --ds-cut-pipeline-stages="stages=3 partition=best" 2>&1 | FileCheck %s --check-prefix=HAND
// RUN: not ds-opt %t/short.mlir --ds-declare-mesh --ds-cut-pipeline-stages="stages=2 partition=evenly" 2>&1 | FileCheck %s --check-prefix=METHOD
// RUN: not ds-opt %t/short.mlir --ds-declare-mesh --ds-cut-pipeline-stages="stages=2 partition=type:block" 2>&1 | FileCheck %s --check-prefix=TYPE
// RUN: not ds-opt %t/short.mlir --ds-declare-mesh --ds-cut-pipeline-stages="stages=2 partition=type:[a" 2>&1 | FileCheck %s --check-prefix=REGEX

// FUNCTIONS: error: needs @microbatch and @evaluate, of one block each; see ds-verify-train-form
// NONE: error: stages is 0; it must be at least 1
// MANY: error: the model cannot be cut into 5 stages, for which deepstatic.pipeline.stages and chunks ask:
// GAP: error: 'train.exp' op has dist.pipeline_stage 2 behind an op of stage 0; stages follow each other in program order, without gaps
// HAND: error: has ops of 2 stages, and 3 were asked for
// METHOD: error: partition "evenly" is none of best, uniform, parameters, type:REGEX
// TYPE: error: partition "type:block" leaves nothing to share: no module's name matches; that of an op half-way is
// REGEX: error: partition "type:[a" holds no regular expression: brackets ([ ]) not balanced

// STATE: 'train.store' op changes 'average' in stage 1, and stage 0 reads or changes it; one stage must do both: cut the stages elsewhere, or have one
// TWICE: 'train.update_average' op changes 'average' in stage 1, and stage 0 reads or changes it; one stage must do both: cut the stages elsewhere, or have one
//--- functions.mlir
func.func @forward() {
  return
}
//--- short.mlir
train.variable metric @loss : tensor<f32>
train.variable parameter @w : tensor<f32> from #train.fill<0.0> {trainable}
func.func @microbatch() {
  %w = train.read @w : tensor<f32>
  %0 = train.exp %w : (tensor<f32>) -> tensor<f32>
  train.accumulate %0 into @loss : tensor<f32>
  return
}
func.func @evaluate() {
  return
}
//--- gap.mlir
train.variable parameter @w : tensor<f32> from #train.fill<0.0> {trainable}
func.func @microbatch() {
  %w = train.read @w : tensor<f32>
  %0 = train.exp %w {dist.pipeline_stage = 0 : i64} : (tensor<f32>) -> tensor<f32>
  %1 = train.exp %0 {dist.pipeline_stage = 2 : i64} : (tensor<f32>) -> tensor<f32>
  return
}
func.func @evaluate() {
  return
}
//--- hand.mlir
train.variable parameter @w : tensor<f32> from #train.fill<0.0> {trainable}
func.func @microbatch() {
  %w = train.read @w : tensor<f32>
  %0 = train.exp %w {dist.pipeline_stage = 0 : i64} : (tensor<f32>) -> tensor<f32>
  %1 = train.exp %0 {dist.pipeline_stage = 1 : i64} : (tensor<f32>) -> tensor<f32>
  return
}
func.func @evaluate() {
  return
}
//--- state.mlir
train.variable buffer @average : tensor<f32> from #train.fill<0.0>
func.func @microbatch() {
  %old = train.read @average {dist.pipeline_stage = 0 : i64} : tensor<f32>
  %0 = train.exp %old {dist.pipeline_stage = 0 : i64} : (tensor<f32>) -> tensor<f32>
  %1 = train.exp %0 {dist.pipeline_stage = 1 : i64} : (tensor<f32>) -> tensor<f32>
  train.store %1 into @average {dist.pipeline_stage = 1 : i64} : tensor<f32>
  return
}
func.func @evaluate() {
  return
}
//--- twice.mlir
train.variable buffer @average : tensor<f32> from #train.fill<0.0>
func.func @microbatch(%x: tensor<f32>) {
  %0 = train.exp %x {dist.pipeline_stage = 0 : i64} : (tensor<f32>) -> tensor<f32>
  train.update_average %0 into @average momentum 0.9 correction 1.0 {dist.pipeline_stage = 0 : i64} : tensor<f32>
  %1 = train.exp %0 {dist.pipeline_stage = 1 : i64} : (tensor<f32>) -> tensor<f32>
  train.update_average %1 into @average momentum 0.9 correction 1.0 {dist.pipeline_stage = 1 : i64} : tensor<f32>
  return
}
func.func @evaluate() {
  return
}
