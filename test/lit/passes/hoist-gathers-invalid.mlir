// RUN: not ds-opt %s --ds-hoist-gathers=max-live=-1 2>&1 | FileCheck %s

// CHECK: error: max-live is -1, prefetch 9223372036854775807; they must not be negative
