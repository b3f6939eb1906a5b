// RUN: ds-opt %s | ds-opt | FileCheck %s
// RUN: ds-opt %s --cse | FileCheck %s --check-prefix=CSE

train.variable parameter @w : tensor<2xf32> from #train.fill<0.0> {trainable}

// CHECK-LABEL: func.func @read
func.func @read() -> tensor<2xf32> {
  // CHECK: train.read @w : tensor<2xf32>
  %0 = train.read @w : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// Tests that two reads are one unless the variable is written in between.
// CSE-LABEL: func.func @keep_order
func.func @keep_order(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  // CSE: %[[OLD:.*]] = train.read @w
  // CSE-NEXT: train.store
  // CSE-NEXT: %[[NEW:.*]] = train.read @w
  // CSE-NEXT: return %[[OLD]], %[[OLD]], %[[NEW]]
  %0 = train.read @w : tensor<2xf32>
  %1 = train.read @w : tensor<2xf32>
  train.store %x into @w : tensor<2xf32>
  %2 = train.read @w : tensor<2xf32>
  return %0, %1, %2 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// Tests that a nested module reads the variables around it.
// CHECK-LABEL: module @reference
module @reference {
  func.func @nested() -> tensor<2xf32> {
    // CHECK: train.read @w
    %0 = train.read @w : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
