// The form of dist.feed is tested in fragment.mlir; here, that it is no dead code.
// RUN: ds-opt %s --canonicalize --cse | FileCheck %s

dist.value @x : tensor<4xf32> input "x"
dist.value @y : tensor<4xf32>

// CHECK-LABEL: dist.fragment @feeds
dist.fragment @feeds phase forward stage 0 {
  // CHECK: dist.feed @x
  dist.feed @x
}
