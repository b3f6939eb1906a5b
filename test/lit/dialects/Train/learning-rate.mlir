// RUN: ds-opt %s | ds-opt | FileCheck %s

// CHECK-LABEL: func.func @schedules
func.func @schedules(%step: tensor<i64>) -> tensor<f64> {
  // CHECK: train.learning_rate "constant" %{{.*}} {lr = 1.000000e-03 : f64} : (tensor<i64>) -> tensor<f64>
  %0 = train.learning_rate "constant" %step {lr = 0.001} : (tensor<i64>) -> tensor<f64>
  // CHECK: train.learning_rate "WarmupLR" %{{.*}} {warmup_num_steps = 10 : i64, warmup_type = "log"}
  %1 = train.learning_rate "WarmupLR" %step {warmup_num_steps = 10, warmup_type = "log"} : (tensor<i64>) -> tensor<f64>
  // CHECK: train.learning_rate "WarmupDecayLR" %{{.*}} {}
  %2 = train.learning_rate "WarmupDecayLR" %step {} : (tensor<i64>) -> tensor<f64>
  // CHECK: train.learning_rate "WarmupCosineLR" %{{.*}} {}
  %3 = train.learning_rate "WarmupCosineLR" %step {} : (tensor<i64>) -> tensor<f64>
  return %0 : tensor<f64>
}
