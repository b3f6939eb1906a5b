// RUN: ds-opt %S/Inputs/linear.mlir --ds-simplify-pipeline --ds-gradient-pipeline=optimizer=adamw | FileCheck %s
// RUN: ds-opt %S/Inputs/linear.mlir --ds-simplify-pipeline --ds-gradient-pipeline="microbatches=4 optimizer=adamw" | FileCheck %s --check-prefix=FOUR

// Tests a step of one micro-batch: gradients are stored, nothing is scaled, the labels are limited by the classes.
// CHECK-LABEL: func.func @microbatch
// CHECK-SAME:  %arg1: tensor<3xi64> {train.ignored = -100 : i64, train.input = "labels", train.limit = 2 : i64}
// CHECK:       %[[LOGITS:.*]] = train.matmul %arg0, %{{.*}} bias %{{.*}}
// CHECK-NEXT:  %[[LOSS:.*]], %[[LSE:.*]] = train.cross_entropy mean %[[LOGITS]], %arg1
// CHECK-NEXT:  train.store %[[LOSS]] into @loss
// CHECK-NEXT:  %[[SEED:.*]] = train.loss_gradient 1.000000e+00
// CHECK-NEXT:  %[[D:.*]] = train.cross_entropy_grad mean %[[LOGITS]], %arg1, %[[LSE]], %[[SEED]] ignore -100
// CHECK-NEXT:  %[[DB:.*]] = train.reduce_sum %[[D]] over [0]
// CHECK-NEXT:  %[[DW:.*]] = train.matmul %arg0 transposed, %[[D]]
// CHECK-DAG:   train.store %[[DB]] into @"b::gradient"
// CHECK-DAG:   train.store %[[DW]] into @"w::gradient"
// CHECK-LABEL: func.func @evaluate
// CHECK-NOT:   gradient
// CHECK:       train.store %{{.*}} into @loss
// CHECK-LABEL: func.func @update
// CHECK:       train.adamw @w
// CHECK:       train.adamw @b

// Tests a step of four: gradients add up, and a quarter is in the seed, once.
// FOUR-LABEL: func.func @microbatch
// FOUR:       train.accumulate %{{.*}} into @loss
// FOUR:       train.loss_gradient 2.500000e-01
// FOUR:       train.accumulate %{{.*}} into @"{{[bw]}}::gradient"
// FOUR:       train.accumulate %{{.*}} into @"{{[bw]}}::gradient"
// FOUR-LABEL: func.func @update
// FOUR:       %[[FOUR:.*]] = train.constant dense<4.000000e+00> : tensor<f32>
// FOUR:       train.div %{{.*}}, %[[FOUR]]
