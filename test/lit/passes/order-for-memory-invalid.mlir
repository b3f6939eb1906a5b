// RUN: split-file %s %t
// RUN: not ds-opt %t/unplaced.mlir --ds-order-for-memory=alignment=48 2>&1 | FileCheck %s --check-prefix=ALIGNMENT
// RUN: not ds-opt %t/unplaced.mlir --ds-order-for-memory 2>&1 | FileCheck %s --check-prefix=UNPLACED

// ALIGNMENT: error: alignment 48 is not a power of two
// UNPLACED: error: 'plan.role' op has no offsets, so nothing says which order is better; run ds-assign-offsets first

//--- unplaced.mlir
plan.role @main ranks [0, 0] {
  plan.arena @device space device
}
