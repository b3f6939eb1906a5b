// RUN: not ds-opt %s --ds-offload-gradients=least-bytes=-1 2>&1 | FileCheck %s --check-prefix=BYTES
// RUN: not ds-opt %s --ds-offload-gradients=space=device 2>&1 | FileCheck %s --check-prefix=SPACE

// BYTES: error: least-bytes is -1; it must not be negative
// SPACE: error: space is device; it must be host or nvme
module {
}
