// RUN: ds-opt %s | ds-opt | FileCheck %s

train.variable optimizer @step : tensor<i64> from #train.fill<0.0>

// CHECK-LABEL: func.func @increment
func.func @increment() {
  // CHECK: train.increment @step
  train.increment @step
  return
}
