// RUN: not ds-opt %s --ds-round-once=microbatches=0 2>&1 | FileCheck %s

// CHECK: error: microbatches is 0; it must be at least 1
