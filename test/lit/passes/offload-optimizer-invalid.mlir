// RUN: ds-opt %s --ds-offload-optimizer=least-bytes=-1 --verify-diagnostics
// RUN: not ds-opt %s --ds-offload-optimizer=space=device 2>&1 | FileCheck %s

// CHECK: error: space is device; it must be host or nvme

// expected-error@+1 {{least-bytes is -1; it must not be negative}}
module {
}
