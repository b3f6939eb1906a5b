// RUN: ds-opt %s --split-input-file | ds-opt --split-input-file | FileCheck %s

// Tests what passes say of a whole program.
// CHECK: module attributes {train.numerics = #train.numerics<lossy>} {
module attributes {train.numerics = #train.numerics<lossy>} {
}

// -----

// CHECK: module attributes {train.recompute_summary = #train.recompute_summary<level 2 of 6, layers 1 of 3>} {
module attributes {train.recompute_summary = #train.recompute_summary<level 2 of 6, layers 1 of 3>} {
}
