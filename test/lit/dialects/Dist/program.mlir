// The form of dist.program is tested in role.mlir; here, that programs of two roles may share a name.
// RUN: ds-opt %s | FileCheck %s

// CHECK-LABEL: dist.role @first
dist.role @first ranks [0, 0] {
  // CHECK: dist.program @step
  dist.program @step {
  }
}
// CHECK-LABEL: dist.role @second
dist.role @second ranks [1, 1] {
  // CHECK: dist.program @step
  dist.program @step {
  }
}
