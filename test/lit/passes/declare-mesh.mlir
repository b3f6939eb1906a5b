// RUN: ds-opt %s --ds-declare-mesh="pipe=2 data=4" --split-input-file | FileCheck %s

// Tests that the mesh has all axes, those that nobody uses of size 1, and comes first.
// CHECK:      module {
// CHECK-NEXT:   dist.mesh @mesh ["pipe", "data", "expert", "tensor"] [2, 4, 1, 1]
// CHECK-NEXT:   train.variable buffer @b
train.variable buffer @b : tensor<2xf32> from #train.fill<0.0>

// -----

// Tests that a mesh written by hand stays, axes in its own order.
// CHECK:     module {
// CHECK:       dist.mesh @mine ["data", "pipe"] [4, 2]
// CHECK-NOT:   dist.mesh
dist.mesh @mine ["data", "pipe"] [4, 2]
