// RUN: ds-opt %s --ds-schedule-calls="microbatches=3 schedule=1f1b" | FileCheck %s
// RUN: ds-opt %s --ds-schedule-calls="microbatches=3 schedule=gpipe" | FileCheck %s --check-prefix=GPIPE
// RUN: not ds-opt %s --ds-schedule-calls="microbatches=3 schedule=2f2b" 2>&1 | FileCheck %s --check-prefix=NAME

// Tests a role for each rank of the pipe axis; 1F1B's order; that feeds are called one micro-batch ahead, receives one task ahead.
// The ranks of a role are those at its coordinate of the mesh, which is written by hand.
// CHECK:       dist.role @stage0 ranks [0, 3, 8, 11] {
// CHECK-NEXT:    dist.program @step {
// CHECK-NEXT:      dist.call @"feed::0" microbatch 0
// CHECK-NEXT:      dist.call @"feed::0" microbatch 1
// CHECK-NEXT:      dist.call @"forward::0" microbatch 0
// CHECK-NEXT:      dist.call @"feed::0" microbatch 2
// CHECK-NEXT:      dist.call @"receive::backward::0" microbatch 0
// CHECK-NEXT:      dist.call @"forward::0" microbatch 1
// CHECK-NEXT:      dist.call @"backward::0" microbatch 0
// CHECK-NEXT:      dist.call @"receive::backward::0" microbatch 1
// CHECK-NEXT:      dist.call @"forward::0" microbatch 2
// CHECK-NEXT:      dist.call @"receive::backward::0" microbatch 2
// CHECK-NEXT:      dist.call @"backward::0" microbatch 1
// CHECK-NEXT:      dist.call @"backward::0" microbatch 2
// CHECK-NEXT:      dist.call @"update::0" microbatch 2
// CHECK-NEXT:    }
// CHECK-NEXT:    dist.program @evaluate {
// CHECK-NEXT:      dist.call @"feed::0" microbatch 0
// CHECK-NEXT:      dist.call @"evaluate::0" microbatch 0
// CHECK:       dist.role @stage1 ranks [4, 7, 12, 15] {
// CHECK-NEXT:    dist.program @step {
// CHECK-NEXT:      dist.call @"receive::forward::1" microbatch 0
// CHECK-NEXT:      dist.call @"forward::1" microbatch 0
// CHECK-NEXT:      dist.call @"receive::forward::1" microbatch 1
// CHECK-NEXT:      dist.call @"backward::1" microbatch 0
// GPIPE-LABEL: dist.role @stage1
// GPIPE:         dist.call @"forward::1" microbatch 2
// GPIPE:         dist.call @"backward::1" microbatch 0
// NAME: error: schedule "2f2b" is none of gpipe, 1f1b, interleaved, zb-h1
dist.mesh @mesh ["data", "pipe", "tensor"] [2, 2, 4]
dist.fragment @"feed::0" phase feed stage 0 {
}
dist.fragment @"forward::0" phase forward stage 0 {
}
dist.fragment @"receive::forward::1" phase receive stage 1 for @"forward::1" {
}
dist.fragment @"forward::1" phase forward stage 1 {
}
dist.fragment @"backward::1" phase backward stage 1 {
}
dist.fragment @"receive::backward::0" phase receive stage 0 for @"backward::0" {
}
dist.fragment @"backward::0" phase backward stage 0 {
}
dist.fragment @"update::0" phase update pipe 0 {
}
dist.fragment @"update::1" phase update pipe 1 {
}
dist.fragment @"evaluate::0" phase evaluate stage 0 {
}
dist.fragment @"evaluate::1" phase evaluate stage 1 {
}
