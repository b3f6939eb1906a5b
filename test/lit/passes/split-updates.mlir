// RUN: ds-opt %s --ds-split-updates=elements=600 | FileCheck %s
// RUN: ds-opt %s "--ds-split-updates=elements=600 parameters" | FileCheck %s --check-prefix=PARAMETERS

// Tests that an update is cut where it has more elements, with scalars whole; one of few elements, one of a small state and
// Lamb's, whose step depends on all elements, stay.
// CHECK-LABEL: plan.routine @update
// CHECK-NEXT:    plan.kernel "sgd" {}({{.*}}) : [tensor<600xf32>, tensor<600xf32>, tensor<600xf32>, tensor<f32>] access [3, 1, 3, 1] at [0, 0, 0, 0]
// CHECK-NEXT:    plan.kernel "sgd" {}({{.*}}) : [tensor<600xf32>, tensor<600xf32>, tensor<600xf32>, tensor<f32>] access [3, 1, 3, 1] at [2400, 2400, 2400, 0]
// CHECK-NEXT:    plan.kernel "sgd" {}({{.*}}) : [tensor<80xf32>, tensor<80xf32>, tensor<80xf32>, tensor<f32>] access [3, 1, 3, 1] at [4800, 4800, 4800, 0]
// CHECK-NEXT:    plan.kernel "sgd" {}({{.*}}) : [tensor<512xf32>, tensor<512xf32>, tensor<512xf32>, tensor<f32>] access [3, 1, 3, 1] at [2048, 2048, 2048, 0]
// CHECK-NEXT:    plan.kernel "lamb" {}({{.*}}) : [tensor<40x32xf32>
// CHECK-NEXT:  }

// Tests that an update without state is cut where its parameter will lie elsewhere, and one of a parameter that stays is not.
// PARAMETERS-LABEL: plan.routine @plain
// PARAMETERS-NEXT:    plan.kernel "sgd" {}({{.*}}) : [tensor<600xf32>, tensor<600xf32>] access [3, 1] at [0, 0]
// PARAMETERS-NEXT:    plan.kernel "sgd" {}({{.*}}) : [tensor<600xf32>, tensor<600xf32>] access [3, 1] at [2400, 2400]
// PARAMETERS-NEXT:    plan.kernel "sgd" {}({{.*}}) : [tensor<80xf32>, tensor<80xf32>] access [3, 1] at [4800, 4800]
// PARAMETERS-NEXT:    plan.kernel "sgd" {}({{.*}}) : [tensor<1000xf32>,
// CHECK-LABEL:      plan.routine @plain
// CHECK-NEXT:         plan.kernel "sgd" {}({{.*}}) : [tensor<40x32xf32>,
plan.role @r ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %w = plan.buffer "w" in @device bytes 5120 scope plan category weights slots 1 of @w
  %m = plan.buffer "m" in @device bytes 5120 scope plan category optimizer slots 1 of @m
  %v = plan.buffer "v" in @device bytes 5120 scope plan category optimizer slots 1 of @v
  %g = plan.buffer "g" in @device bytes 5120 scope step category gradients slots 1
  %r = plan.buffer "r" in @device bytes 4 scope step category activations slots 1
  plan.routine @update phase update {
    plan.kernel "sgd" {}(%w, %g, %m, %r) : [tensor<40x32xf32>, tensor<40x32xf32>, tensor<40x32xf32>, tensor<f32>] access [3, 1, 3, 1] at [0, 0, 0, 0] on @compute
    plan.kernel "sgd" {}(%w, %g, %m, %r) : [tensor<512xf32>, tensor<512xf32>, tensor<512xf32>, tensor<f32>] access [3, 1, 3, 1] at [2048, 2048, 2048, 0] on @compute
    plan.kernel "lamb" {}(%w, %g, %m, %v) : [tensor<40x32xf32>, tensor<40x32xf32>, tensor<40x32xf32>, tensor<40x32xf32>] access [3, 1, 3, 3] at [0, 0, 0, 0] on @compute
  }  %few = plan.buffer "few" in @device bytes 4000 scope plan category weights slots 1 of @few
  plan.routine @plain phase update {
    plan.kernel "sgd" {}(%w, %g) : [tensor<40x32xf32>, tensor<40x32xf32>] access [3, 1] at [0, 0] on @compute
    plan.kernel "sgd" {}(%few, %g) : [tensor<1000xf32>, tensor<1000xf32>] access [3, 1] at [0, 0] on @compute
  }
}
