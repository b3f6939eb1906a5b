// RUN: ds-opt %s --ds-schedule-calls="microbatches=3 schedule=1f1b" | FileCheck %s
// RUN: ds-opt %s --ds-schedule-calls=schedule=1f1b | FileCheck %s --check-prefix=ONE

dist.fragment @feed {
}
dist.fragment @forward {
}
dist.fragment @backward {
}
dist.fragment @update {
}
dist.fragment @evaluate {
}

// Tests that feeds run one micro-batch ahead, and that the update follows the last backward.
// CHECK:       dist.mesh @mesh ["pipe", "data", "tensor"] [1, 1, 1]
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
