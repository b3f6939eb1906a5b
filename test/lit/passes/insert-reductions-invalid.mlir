// RUN: not ds-opt %s --ds-insert-reductions 2>&1 | FileCheck %s

// CHECK: error: has no dist.mesh; ds-declare-mesh makes it
