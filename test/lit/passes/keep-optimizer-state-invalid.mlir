// RUN: not ds-opt %s --ds-keep-optimizer-state=share=1.5 2>&1 | FileCheck %s
// RUN: ds-opt %s --ds-keep-optimizer-state=share=-0.5 --verify-diagnostics

// CHECK: error: share is 1.5

// expected-error@+1 {{share is -5.000000e-01; it must be from 0 to 1}}
module {
}
