// RUN: ds-opt %s | ds-opt | FileCheck %s

// CHECK: dist.value @"h.0/add" : tensor<4x64xf32>
dist.value @"h.0/add" : tensor<4x64xf32>
// CHECK: dist.value @input_ids : tensor<4x128xi64> input "input_ids"
dist.value @input_ids : tensor<4x128xi64> input "input_ids"
