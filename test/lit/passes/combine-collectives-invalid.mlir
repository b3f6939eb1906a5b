// RUN: not ds-opt %s --ds-combine-collectives=elements=-1 2>&1 | FileCheck %s

// CHECK: error: elements is -1; it must not be negative
