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
  // CHECK: train.learning_rate "LRRangeTest" %{{.*}} {lr_range_test_step_size = 10 : i64}
  %4 = train.learning_rate "LRRangeTest" %step {lr_range_test_step_size = 10} : (tensor<i64>) -> tensor<f64>
  // CHECK: train.learning_rate "OneCycle" %{{.*}} {cycle_max_lr = 5.000000e-01 : f64}
  %5 = train.learning_rate "OneCycle" %step {cycle_max_lr = 0.5} : (tensor<i64>) -> tensor<f64>
  // CHECK: train.cycled_momentum %{{.*}} {cycle_max_mom = 9.000000e-01 : f64} : (tensor<i64>) -> tensor<f64>
  %6 = train.cycled_momentum %step {cycle_max_mom = 0.9} : (tensor<i64>) -> tensor<f64>
  return %0 : tensor<f64>
}
