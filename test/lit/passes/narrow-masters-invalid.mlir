// RUN: not ds-opt %s --ds-narrow-masters=type=f8 2>&1 | FileCheck %s

// CHECK: error: type is "f8"; it must be bf16 or f16
