// RUN: ds-opt %S/Inputs/linear.mlir --ds-simplify-pipeline --ds-gradient-pipeline=optimizer=adamw --ds-distribute-pipeline=schedule=1f1b --ds-plan-pipeline='device=cuda workspace-bytes-per-thread=4194304 alignment=256' | FileCheck %s

// Tests that a plan for a GPU has the workspaces of its kernels, as bytes of the arena; that products are not cut for workers; that
// the step may be recorded, and the evaluation is run as it stands.
// CHECK-LABEL: plan.role @main ranks [0, 0] {
// CHECK-DAG:     %[[MATMUL:.*]] = plan.buffer "matmul workspace" in @device bytes 4194304 scope call category workspace
// CHECK-DAG:     %[[LOSS:.*]] = plan.buffer "cross_entropy workspace" in @device bytes {{[1-9][0-9]*}} scope call category workspace
// CHECK-LABEL:   plan.routine @forward phase forward stage 0 {
// CHECK:           plan.kernel "matmul" {{.*}}pieces = 1 : i64{{.*}}(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[MATMUL]]) : [{{.*}}, tensor<4194304xi8>] access [1, 1, 1, 2, 4]
// CHECK:           plan.kernel "cross_entropy" {{.*}}, %[[LOSS]]) {{.*}} access [1, 1, 2, 2, 4]
// CHECK-LABEL:   plan.program "step" captured {
// CHECK-LABEL:   plan.program "evaluate" {
