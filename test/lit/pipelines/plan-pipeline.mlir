// RUN: ds-opt %S/Inputs/linear.mlir --ds-simplify-pipeline --ds-gradient-pipeline=optimizer=adamw --ds-distribute-pipeline=schedule=1f1b --ds-plan-pipeline="threads=2 alignment=64" | FileCheck %s

// Tests the whole way: every buffer has its place, gradients are written where the update reads them, and no dist op is left.
// CHECK-LABEL: plan.role @main ranks [0, 0] {
// CHECK-NEXT:    plan.arena @device space device bytes {{[0-9]+}} peak {{[0-9]+}}
// CHECK-NOT:     plan.buffer {{.*}} slots {{[12]}}{{$}}
// CHECK-DAG:     %[[GB:.*]] = plan.buffer "b::gradient"
// CHECK-DAG:     %[[GW:.*]] = plan.buffer "w::gradient"
// CHECK-LABEL:   plan.routine @backward phase backward stage 0 {
// CHECK-NEXT:      plan.kernel "cross_entropy_grad"
// CHECK-NEXT:      plan.kernel "reduce_sum" {axes = array<i64: 0>}(%{{.*}}, %[[GB]])
// CHECK-NEXT:      plan.kernel "matmul" {{.*}}(%{{.*}}, %{{.*}}, %[[GW]]) {{.*}} signal [@input_done]
// CHECK-NEXT:    }
// CHECK-LABEL:   plan.routine @update phase update {
// CHECK:           plan.kernel "adamw" {{.*}}(%{{.*}}, %[[GW]],
// CHECK:           plan.kernel "adamw" {{.*}}(%{{.*}}, %[[GB]],
// CHECK-LABEL:   plan.program "step" {
// CHECK-NOT:       begin_step
// CHECK:           plan.metric "loss"
// CHECK-NEXT:      plan.metric "grad_norm"
// CHECK-NEXT:      plan.metric "lr"
// CHECK-LABEL:   plan.program "evaluate" {
// CHECK-NOT:     dist.role
