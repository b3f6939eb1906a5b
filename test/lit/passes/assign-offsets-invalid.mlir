// RUN: split-file %s %t
// RUN: not ds-opt %t/plan.mlir --ds-assign-offsets=alignment=48 2>&1 | FileCheck %s --check-prefix=ALIGNMENT
// RUN: not ds-opt %t/plan.mlir --ds-assign-offsets=alignment=0 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not ds-opt %t/huge.mlir --ds-assign-offsets 2>&1 | FileCheck %s --check-prefix=HUGE

// ALIGNMENT: error: alignment 48 is not a power of two
// ZERO: error: alignment 0 is not a power of two
// HUGE: error: 'plan.arena' op cannot be laid out:

//--- plan.mlir
plan.role @main ranks [0, 0] {
}
//--- huge.mlir
plan.role @main ranks [0, 0] {
  plan.arena @device space device
  %a = plan.buffer "a" in @device bytes 4611686018427387904 scope slot category activations slots 3
  %b = plan.buffer "b" in @device bytes 9223372036854775807 scope call category activations slots 1
}
