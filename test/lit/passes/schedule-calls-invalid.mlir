// RUN: split-file %s %t
// RUN: not ds-opt %t/fragments.mlir --ds-declare-mesh --ds-schedule-calls 2>&1 | FileCheck %s --check-prefix=SCHEDULE
// RUN: not ds-opt %t/no-backward.mlir --ds-declare-mesh --ds-schedule-calls=schedule=1f1b 2>&1 | FileCheck %s --check-prefix=BACKWARD
// RUN: not ds-opt %t/fragments.mlir --ds-declare-mesh --ds-schedule-calls="microbatches=0 schedule=1f1b" 2>&1 | FileCheck %s --check-prefix=COUNT

// SCHEDULE: error: schedule "" is none of gpipe, 1f1b, interleaved, zb-h1
// BACKWARD: error: has no fragment of phase backward and stage 0; ds-outline-fragments makes it
// COUNT: error: a pipeline of 1 ranks, 1 chunks and 0 micro-batches has nothing to run; each must be at least 1

//--- no-backward.mlir
dist.fragment @feed phase feed stage 0 {
}
dist.fragment @forward phase forward stage 0 {
}
//--- fragments.mlir
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
