// The form of dist.store is tested in fragment.mlir; here, that it is no dead code.
// RUN: ds-opt %s --canonicalize --cse | FileCheck %s

dist.value @x : tensor<4xf32> input "x"
dist.value @y : tensor<4xf32>

// CHECK-LABEL: dist.fragment @keeps
dist.fragment @keeps phase forward stage 0 {
  // CHECK: dist.store
  %0 = dist.load @x : tensor<4xf32>
  %1 = train.exp %0 : (tensor<4xf32>) -> tensor<4xf32>
  dist.store %1 as @y : tensor<4xf32>
}
