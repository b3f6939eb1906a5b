// The form of dist.load is tested in fragment.mlir; here, that CSE sees its effect.
// RUN: ds-opt %s --canonicalize --cse | FileCheck %s

dist.value @x : tensor<4xf32> input "x"
dist.value @y : tensor<4xf32>

// Tests that two takes are one unless something is kept in between.
// CHECK-LABEL: dist.fragment @takes
dist.fragment @takes phase forward stage 0 {
  // CHECK: %[[X:.*]] = dist.load @x
  // CHECK-NEXT: %[[SUM:.*]] = train.add %[[X]], %[[X]]
  %0 = dist.load @x : tensor<4xf32>
  %1 = dist.load @x : tensor<4xf32>
  %2 = train.add %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  dist.store %2 as @y : tensor<4xf32>
}
