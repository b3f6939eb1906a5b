// RUN: ds-opt %s --ds-schedule-calls="microbatches=2 schedule=accumulate-by-layer" | FileCheck %s

// Tests that one rank runs all micro-batches of a stage before the next stage, and feeds a stage for the first time one task ahead of
// it; the plan says of which stages it consists.
// CHECK:       dist.role @main ranks [0, 0] {
// CHECK-NEXT:    dist.program @step {
// CHECK-NEXT:      dist.call @"feed::0" microbatch 0
// CHECK-NEXT:      dist.call @"feed::0" microbatch 1
// CHECK-NEXT:      dist.call @"forward::0" microbatch 0
// CHECK-NEXT:      dist.call @"feed::1" microbatch 0
// CHECK-NEXT:      dist.call @"forward::0" microbatch 1
// CHECK-NEXT:      dist.call @"feed::1" microbatch 1
// CHECK-NEXT:      dist.call @"forward::1" microbatch 0
// CHECK-NEXT:      dist.call @"forward::1" microbatch 1
// CHECK-NEXT:      dist.call @"backward::1" microbatch 0
// CHECK-NEXT:      dist.call @"backward::1" microbatch 1
// CHECK-NEXT:      dist.call @"backward::0" microbatch 0
// CHECK-NEXT:      dist.call @"backward::0" microbatch 1
// CHECK-NEXT:      dist.call @update microbatch 1
// CHECK-NEXT:    }
// CHECK:       dist.pipeline schedule "accumulate-by-layer" chunks 2 bubble 0.0
dist.mesh @mesh ["data", "pipe", "tensor"] [1, 1, 1]
dist.fragment @"feed::0" phase feed stage 0 {
}
dist.fragment @"feed::1" phase feed stage 1 {
}
dist.fragment @"forward::0" phase forward stage 0 {
}
dist.fragment @"forward::1" phase forward stage 1 {
}
dist.fragment @"backward::1" phase backward stage 1 {
}
dist.fragment @"backward::0" phase backward stage 0 {
}
dist.fragment @update phase update pipe 0 {
}
dist.fragment @"evaluate::0" phase evaluate stage 0 {
}
dist.fragment @"evaluate::1" phase evaluate stage 1 {
}
