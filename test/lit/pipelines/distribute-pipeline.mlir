// RUN: ds-opt %S/Inputs/linear.mlir --ds-simplify-pipeline --ds-gradient-pipeline="microbatches=2 optimizer=adamw" --ds-distribute-pipeline="microbatches=2 schedule=1f1b" | FileCheck %s

// Tests that the fragments name the reference ops, that values have the names of the model's, and the schedule.
// CHECK-LABEL: module @reference
// CHECK:         train.matmul {{.*}} {train.reference = array<i64: [[MATMUL:[0-9]+]]>}
// CHECK-DAG:   dist.value @x : tensor<3x4xf32> input "x"
// CHECK-DAG:   dist.value @labels : tensor<3xi64> input "labels" {train.ignored = -100 : i64, train.limit = 2 : i64}
// CHECK-LABEL: dist.fragment @feed phase feed stage 0 {
// CHECK:       dist.value @fc : tensor<3x2xf32>
// CHECK-NEXT:  dist.value @"loss::value" : tensor<3xf32>
// CHECK-LABEL: dist.fragment @forward phase forward stage 0 {
// CHECK:         %[[LOGITS:.*]] = train.matmul {{.*}} {train.reference = array<i64: [[MATMUL]]>}
// CHECK-NEXT:    dist.store %[[LOGITS]] as @fc
// CHECK:         dist.store %{{.*}} as @"loss::value"
// CHECK-LABEL: dist.fragment @backward phase backward stage 0 {
// CHECK-NEXT:    train.loss_gradient 5.000000e-01
// CHECK-LABEL: dist.fragment @update phase update pipe 0 {
// CHECK-LABEL: dist.fragment @evaluate phase evaluate stage 0 {
// CHECK-LABEL: dist.role @main ranks [0, 0] {
// CHECK:         dist.program @step {
// CHECK-COUNT-7:   dist.call
// CHECK-NEXT:    }
