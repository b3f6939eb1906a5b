// This pass has no error of its own; here is what it must leave alone.
// RUN: ds-opt %s --ds-pack-heads | FileCheck %s

// Tests that an attention stays whose slices stand in another order, are of two tensors, leave something out, skip heads, are rows, or
// are read in the other layout.
// CHECK-NOT: packed_attention
func.func @order(%x: tensor<2x16x12x8xf32>, %y: tensor<2x16x12x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>) {
  %q = train.slice %x from [0, 0, 0, 0] size [2, 16, 4, 8] step [1, 1, 1, 1] : (tensor<2x16x12x8xf32>) -> tensor<2x16x4x8xf32>
  %k = train.slice %x from [0, 0, 4, 0] size [2, 16, 4, 8] step [1, 1, 1, 1] : (tensor<2x16x12x8xf32>) -> tensor<2x16x4x8xf32>
  %v = train.slice %x from [0, 0, 8, 0] size [2, 16, 4, 8] step [1, 1, 1, 1] : (tensor<2x16x12x8xf32>) -> tensor<2x16x4x8xf32>
  %w = train.slice %y from [0, 0, 8, 0] size [2, 16, 4, 8] step [1, 1, 1, 1] : (tensor<2x16x12x8xf32>) -> tensor<2x16x4x8xf32>
  %o, %lse = train.attention %k, %q, %v scale 1.0 bshd : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  %p, %lsp = train.attention %q, %k, %w scale 1.0 bshd : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  %r, %lsr = train.attention %q, %k, %v scale 1.0 : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x16x4xf32>)
  return %o, %p, %r : tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>
}
func.func @rest(%x: tensor<2x16x13x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>) {
  %q = train.slice %x from [0, 0, 0, 0] size [2, 16, 4, 8] step [1, 1, 1, 1] : (tensor<2x16x13x8xf32>) -> tensor<2x16x4x8xf32>
  %k = train.slice %x from [0, 0, 4, 0] size [2, 16, 4, 8] step [1, 1, 1, 1] : (tensor<2x16x13x8xf32>) -> tensor<2x16x4x8xf32>
  %v = train.slice %x from [0, 0, 8, 0] size [2, 16, 4, 8] step [1, 1, 1, 1] : (tensor<2x16x13x8xf32>) -> tensor<2x16x4x8xf32>
  %w = train.slice %x from [0, 0, 8, 0] size [2, 16, 2, 8] step [1, 1, 2, 1] : (tensor<2x16x13x8xf32>) -> tensor<2x16x2x8xf32>
  %u = train.slice %x from [0, 0, 4, 0] size [2, 16, 2, 8] step [1, 1, 1, 1] : (tensor<2x16x13x8xf32>) -> tensor<2x16x2x8xf32>
  %o, %lse = train.attention %q, %k, %v scale 1.0 bshd : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  %p, %lsp = train.attention %q, %u, %w scale 1.0 bshd : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return %o, %p : tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>
}
func.func @rows(%x: tensor<6x16x4x8xf32>) -> tensor<2x16x4x8xf32> {
  %q = train.slice %x from [0, 0, 0, 0] size [2, 16, 4, 8] step [1, 1, 1, 1] : (tensor<6x16x4x8xf32>) -> tensor<2x16x4x8xf32>
  %k = train.slice %x from [2, 0, 0, 0] size [2, 16, 4, 8] step [1, 1, 1, 1] : (tensor<6x16x4x8xf32>) -> tensor<2x16x4x8xf32>
  %v = train.slice %x from [4, 0, 0, 0] size [2, 16, 4, 8] step [1, 1, 1, 1] : (tensor<6x16x4x8xf32>) -> tensor<2x16x4x8xf32>
  %o, %lse = train.attention %q, %k, %v scale 1.0 bshd : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return %o : tensor<2x16x4x8xf32>
}
