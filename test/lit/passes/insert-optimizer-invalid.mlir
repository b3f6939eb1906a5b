// RUN: split-file %s %t
// RUN: not ds-opt %t/no-microbatch.mlir --ds-insert-optimizer=optimizer=sgd 2>&1 | FileCheck %s --check-prefix=MICROBATCH
// RUN: not ds-opt %t/no-loss.mlir --ds-insert-optimizer=optimizer=sgd 2>&1 | FileCheck %s --check-prefix=LOSS
// RUN: not ds-opt %t/step.mlir --ds-insert-optimizer 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not ds-opt %t/step.mlir --ds-insert-optimizer=optimizer=muon 2>&1 | FileCheck %s --check-prefix=OPTIMIZER
// RUN: not ds-opt %t/step.mlir --ds-insert-optimizer="optimizer=sgd schedule=Cosine" 2>&1 | FileCheck %s --check-prefix=SCHEDULE
// RUN: not ds-opt %t/step.mlir --ds-insert-optimizer="optimizer=sgd schedule=WarmupLR schedule-parameters={lr 3}" 2>&1 | FileCheck %s --check-prefix=WARMUP
// RUN: not ds-opt %t/step.mlir --ds-insert-optimizer="optimizer=sgd momentum-parameters={a = 1}" 2>&1 | FileCheck %s --check-prefix=MOMENTUM
// RUN: not ds-opt %t/step.mlir --ds-insert-optimizer="optimizer=sgd microbatches=0" 2>&1 | FileCheck %s --check-prefix=COUNT
// RUN: not ds-opt %t/step.mlir --ds-insert-optimizer=optimizer=sgd --ds-insert-optimizer=optimizer=sgd 2>&1 | FileCheck %s --check-prefix=TWICE

// MICROBATCH: error: has no @microbatch; run ds-differentiate before
// LOSS: error: has no metric @loss; ds-differentiate makes it
// MISSING: error: optimizer "" is none of adamw, sgd, adagrad, lion, lamb
// OPTIMIZER: error: optimizer "muon" is none of adamw, sgd, adagrad, lion, lamb
// SCHEDULE: error: schedule "Cosine" is none of constant, WarmupLR, WarmupDecayLR, WarmupCosineLR, LRRangeTest, OneCycle
// WARMUP: error: schedule-parameters is "lr 3", which is no list of "name = value"
// MOMENTUM: error: momentum-parameters cycle a beta, which sgd has not
// COUNT: error: microbatches is 0; it must be at least 1
// TWICE: redefinition of symbol named 'update'

//--- no-microbatch.mlir
module {
}
//--- no-loss.mlir
func.func @microbatch() {
  return
}
//--- step.mlir
train.variable metric @loss : tensor<f32>
func.func @microbatch() {
  return
}
