// RUN: ds-opt %s | ds-opt | FileCheck %s

// Tests all that is said of a pipeline.
// CHECK:      dist.pipeline schedule "1f1b" chunks 1 bubble 2.500000e-01 {
// CHECK-NEXT:   dist.stage from "a" to "b" forward 1.000000e-03 backward 2.000000e-03 weight 0.000000e+00 in_flight 2 sends ["b"] : [tensor<4x8xf32>] to [1]
// CHECK-NEXT:   dist.stage from "c" to "" forward 1.000000e-03 backward 2.000000e-03 weight 0.000000e+00 in_flight 1 sends [] : [] to []
// CHECK-NEXT: }
dist.pipeline schedule "1f1b" chunks 1 bubble 0.25 {
  dist.stage from "a" to "b" forward 1.0e-3 backward 2.0e-3 weight 0.0 in_flight 2 sends ["b"] : [tensor<4x8xf32>] to [1]
  dist.stage from "c" to "" forward 1.0e-3 backward 2.0e-3 weight 0.0 in_flight 1 sends [] : [] to []
}
