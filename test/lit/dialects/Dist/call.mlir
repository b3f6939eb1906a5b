// The form of dist.call is tested in role.mlir; here, that canonicalization leaves repeated calls alone.
// RUN: ds-opt %s --canonicalize --cse | FileCheck %s

dist.fragment @forward phase forward stage 0 {
}
// CHECK-LABEL: dist.program @step
// CHECK-COUNT-2: dist.call @forward microbatch 0
dist.role @main ranks [0, 0] {
  dist.program @step {
    dist.call @forward microbatch 0
    dist.call @forward microbatch 0
  }
}
