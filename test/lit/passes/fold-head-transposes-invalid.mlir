// This pass has no error of its own; here is what it must leave alone.
// RUN: ds-opt %s --ds-fold-head-transposes | FileCheck %s

// Tests that an attention stays whose query is no transpose, whose key is another one, or whose result is read as it is.
// CHECK-NOT: bshd
func.func @query(%q: tensor<2x4x16x8xf32>, %y: tensor<2x16x4x8xf32>) -> tensor<2x16x4x8xf32> {
  %k = train.transpose %y by [0, 2, 1, 3] : (tensor<2x16x4x8xf32>) -> tensor<2x4x16x8xf32>
  %o, %lse = train.attention %q, %k, %k scale 0.5 : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  %t = train.transpose %o by [0, 2, 1, 3] : (tensor<2x4x16x8xf32>) -> tensor<2x16x4x8xf32>
  return %t : tensor<2x16x4x8xf32>
}
func.func @key(%x: tensor<2x16x4x8xf32>, %y: tensor<4x16x2x8xf32>) -> tensor<2x16x4x8xf32> {
  %q = train.transpose %x by [0, 2, 1, 3] : (tensor<2x16x4x8xf32>) -> tensor<2x4x16x8xf32>
  %k = train.transpose %y by [2, 0, 1, 3] : (tensor<4x16x2x8xf32>) -> tensor<2x4x16x8xf32>
  %o, %lse = train.attention %q, %k, %q scale 0.5 : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  %t = train.transpose %o by [0, 2, 1, 3] : (tensor<2x4x16x8xf32>) -> tensor<2x16x4x8xf32>
  return %t : tensor<2x16x4x8xf32>
}
func.func @result(%x: tensor<2x16x4x8xf32>) -> tensor<2x4x16x8xf32> {
  %q = train.transpose %x by [0, 2, 1, 3] : (tensor<2x16x4x8xf32>) -> tensor<2x4x16x8xf32>
  %o, %lse = train.attention %q, %q, %q scale 0.5 : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return %o : tensor<2x4x16x8xf32>
}
