// RUN: ds-opt %S/Inputs/linear.mlir --ds-simplify-pipeline --ds-gradient-pipeline="data-parallel=4 optimizer=adamw" --ds-record-reference --ds-declare-mesh=data=4 --ds-outline-fragments --ds-schedule-calls=schedule=1f1b -o %t.mlir
// RUN: ds-opt %t.mlir --ds-zero-pipeline="data-parallel=4 stage=3 overlap" | FileCheck %s
// RUN: ds-opt %t.mlir --ds-zero-pipeline="data-parallel=4 stage=1 microbatches=2" | FileCheck %s --check-prefix=ONE
// RUN: ds-opt %t.mlir --ds-zero-pipeline="data-parallel=4 stage=2" -o %t.two.mlir
// RUN: ds-opt %t.mlir --ds-zero-pipeline="data-parallel=4 stage=1" | diff %t.two.mlir -
// RUN: ds-opt %t.mlir --ds-zero-pipeline=stage=3 | diff %t.mlir -

// The last line tests that one data-parallel rank has nobody to share with; the one before it, that with one micro-batch a step
// stage 1 is laid out as stage 2 is.

// Tests stage 3 on four ranks, as fragments of one rank become it: a bucket of which each rank has a quarter is gathered where it is
// used, gradients are reduced in the micro-batch, the update works on this rank's slice, and every collective is a start and a done.
// CHECK:       dist.bucket @zero.0 on @mesh axis "data" : tensor<2048xf32> slices tensor<512xf32> sharding <sharded "data" dim 0> members [@w, @b] at [0, 1024]
// CHECK-LABEL: dist.fragment @forward
// CHECK:         %[[OWN:.*]] = train.read @zero.0 : tensor<512xf32>
// CHECK-NEXT:    %[[T:.*]] = dist.all_gather_start %[[OWN]]
// CHECK-NEXT:    dist.all_gather_done %[[T]]
// CHECK-LABEL: dist.fragment @backward
// CHECK:         %[[F:.*]] = dist.pack
// CHECK-NEXT:    dist.reduce_scatter_start %[[F]] into [@"zero.0::gradient"] accumulate
// CHECK-LABEL: dist.fragment @update
// CHECK:         train.adamw @zero.0 gradient @"zero.0::gradient"

// Tests stage 1 with several micro-batches, without overlap: parameters are whole, gradients are reduced to their owners before the update, and what the owners
// have updated is gathered.
// ONE-LABEL: dist.fragment @backward
// ONE-COUNT-2: train.accumulate
// ONE-LABEL: dist.fragment @update
// ONE-NEXT:    %[[G:.*]] = dist.read_whole @"zero.0::gradient"
// ONE-NEXT:    dist.reduce_scatter %[[G]] into [@"zero.0::gradient"]
// ONE:         train.adamw @zero.0
// ONE-NEXT:    %[[OWN:.*]] = train.read @zero.0
// ONE-NEXT:    dist.all_gather %[[OWN]] into [@zero.0]
// ONE-NOT:     _start
