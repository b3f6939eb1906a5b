// RUN: not ds-opt %s --ds-insert-reductions 2>&1 | FileCheck %s

// CHECK: error: has no dist.mesh or no fragment @update; ds-outline-fragments and ds-schedule-calls make them
