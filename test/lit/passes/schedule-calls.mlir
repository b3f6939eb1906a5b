// RUN: ds-opt %s --ds-declare-mesh --ds-schedule-calls="microbatches=3 schedule=1f1b" | FileCheck %s
// RUN: ds-opt %s --ds-declare-mesh --ds-schedule-calls=schedule=1f1b | FileCheck %s --check-prefix=ONE

dist.fragment @feed phase feed stage 0 {
}
dist.fragment @forward phase forward stage 0 {
}
dist.fragment @backward phase backward stage 0 {
}
dist.fragment @update phase update pipe 0 {
}
dist.fragment @evaluate phase evaluate stage 0 {
}

// Tests that feeds run one micro-batch ahead, and that the update follows the last backward.
// CHECK-LABEL: dist.role @main ranks [0, 0] {
// CHECK-NEXT:    dist.program @step {
// CHECK-NEXT:      dist.call @feed microbatch 0
// CHECK-NEXT:      dist.call @feed microbatch 1
// CHECK-NEXT:      dist.call @forward microbatch 0
// CHECK-NEXT:      dist.call @backward microbatch 0
// CHECK-NEXT:      dist.call @feed microbatch 2
// CHECK-NEXT:      dist.call @forward microbatch 1
// CHECK-NEXT:      dist.call @backward microbatch 1
// CHECK-NEXT:      dist.call @forward microbatch 2
// CHECK-NEXT:      dist.call @backward microbatch 2
// CHECK-NEXT:      dist.call @update microbatch 2
// CHECK-NEXT:    }
// CHECK-NEXT:    dist.program @evaluate {
// CHECK-NEXT:      dist.call @feed microbatch 0
// CHECK-NEXT:      dist.call @evaluate microbatch 0
// CHECK-NEXT:    }

// ONE:      dist.program @step {
// ONE-NEXT:   dist.call @feed microbatch 0
// ONE-NEXT:   dist.call @forward microbatch 0
// ONE-NEXT:   dist.call @backward microbatch 0
// ONE-NEXT:   dist.call @update microbatch 0
// ONE-NEXT: }
