// RUN: ds-opt %s --ds-advance-updates=least-bytes=-1 --verify-diagnostics
// RUN: not ds-opt %s --ds-advance-updates=space=device 2>&1 | FileCheck %s

// CHECK: error: space is device; it must be host or nvme

// expected-error@+1 {{least-bytes is -1; it must not be negative}}
module {
}
