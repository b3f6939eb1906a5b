// RUN: not ds-opt %s --ds-elide-redundant-gathers=max-live=-1 2>&1 | FileCheck %s

// CHECK: error: max-live is -1, max-reuse-distance 9223372036854775807; they must not be negative
