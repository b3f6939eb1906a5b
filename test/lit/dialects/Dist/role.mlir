// RUN: ds-opt %s | ds-opt | FileCheck %s

dist.fragment @forward phase forward stage 0 {
}

// Tests a role of seven ranks, its programs and their calls.
// CHECK-LABEL: dist.role @stage0 ranks [0, 3, 8, 10] {
dist.role @stage0 ranks [0, 3, 8, 10] {
  // CHECK: dist.program @step {
  dist.program @step {
    // CHECK-NEXT: dist.call @forward microbatch 0
    dist.call @forward microbatch 0
    // CHECK-NEXT: dist.call @forward microbatch 1
    dist.call @forward microbatch 1
  }
  // CHECK: dist.program @evaluate {
  dist.program @evaluate {
  }
}
