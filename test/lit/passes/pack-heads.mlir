// RUN: ds-opt %s --ds-pack-heads | FileCheck %s

// Tests grouped keys and a mask of rows that a product of two dimensions wrote; a slice that something else reads stays for that.
// CHECK-LABEL: func.func @grouped
// CHECK-NEXT:    %[[Q:.*]] = train.slice %[[X:[a-z0-9]+]] from [0, 0]
// CHECK-NEXT:    %[[P:.*]] = train.reshape %[[X]] to [2, 16, 8, 8]
// CHECK-NEXT:    %[[O:.*]], %[[LSE:.*]] = train.packed_attention %[[P]] heads 4 mask %{{.*}} scale 5.000000e-01 : (tensor<2x16x8x8xf32>, tensor<16x16xi1>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
// CHECK-NEXT:    return %[[O]], %[[LSE]], %[[Q]]
func.func @grouped(%x: tensor<32x64xf32>, %m: tensor<16x16xi1>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>, tensor<32x32xf32>) {
  %0 = train.slice %x from [0, 0] size [32, 32] step [1, 1] : (tensor<32x64xf32>) -> tensor<32x32xf32>
  %1 = train.slice %x from [0, 32] size [32, 16] step [1, 1] : (tensor<32x64xf32>) -> tensor<32x16xf32>
  %2 = train.slice %x from [0, 48] size [32, 16] step [1, 1] : (tensor<32x64xf32>) -> tensor<32x16xf32>
  %q = train.reshape %0 to [2, 16, 4, 8] : (tensor<32x32xf32>) -> tensor<2x16x4x8xf32>
  %k = train.reshape %1 to [2, 16, 2, 8] : (tensor<32x16xf32>) -> tensor<2x16x2x8xf32>
  %v = train.reshape %2 to [2, 16, 2, 8] : (tensor<32x16xf32>) -> tensor<2x16x2x8xf32>
  %o, %lse = train.attention %q, %k, %v mask %m scale 0.5 bshd : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<16x16xi1>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return %o, %lse, %0 : tensor<2x16x4x8xf32>, tensor<2x4x16xf32>, tensor<32x32xf32>
}

// Tests slices of heads, and of [batch, sequence, 3, heads, depth].
// CHECK-LABEL: func.func @heads
// CHECK-NOT:     train.slice
// CHECK:         train.packed_attention %{{.*}} heads 4 scale 1.000000e+00 causal :
// CHECK-NOT:     train.slice
// CHECK:         train.packed_attention %{{.*}} heads 4 scale 1.000000e+00 :
// CHECK-NEXT:    return
func.func @heads(%x: tensor<2x16x12x8xf32>, %y: tensor<2x16x3x4x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>) {
  %q = train.slice %x from [0, 0, 0, 0] size [2, 16, 4, 8] step [1, 1, 1, 1] : (tensor<2x16x12x8xf32>) -> tensor<2x16x4x8xf32>
  %k = train.slice %x from [0, 0, 4, 0] size [2, 16, 4, 8] step [1, 1, 1, 1] : (tensor<2x16x12x8xf32>) -> tensor<2x16x4x8xf32>
  %v = train.slice %x from [0, 0, 8, 0] size [2, 16, 4, 8] step [1, 1, 1, 1] : (tensor<2x16x12x8xf32>) -> tensor<2x16x4x8xf32>
  %o, %lse = train.attention %q, %k, %v scale 1.0 causal bshd : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  %0 = train.slice %y from [0, 0, 0, 0, 0] size [2, 16, 1, 4, 8] step [1, 1, 1, 1, 1] : (tensor<2x16x3x4x8xf32>) -> tensor<2x16x1x4x8xf32>
  %1 = train.slice %y from [0, 0, 1, 0, 0] size [2, 16, 1, 4, 8] step [1, 1, 1, 1, 1] : (tensor<2x16x3x4x8xf32>) -> tensor<2x16x1x4x8xf32>
  %2 = train.slice %y from [0, 0, 2, 0, 0] size [2, 16, 1, 4, 8] step [1, 1, 1, 1, 1] : (tensor<2x16x3x4x8xf32>) -> tensor<2x16x1x4x8xf32>
  %3 = train.reshape %0 to [2, 16, 4, 8] : (tensor<2x16x1x4x8xf32>) -> tensor<2x16x4x8xf32>
  %4 = train.reshape %1 to [2, 16, 4, 8] : (tensor<2x16x1x4x8xf32>) -> tensor<2x16x4x8xf32>
  %5 = train.reshape %2 to [2, 16, 4, 8] : (tensor<2x16x1x4x8xf32>) -> tensor<2x16x4x8xf32>
  %p, %lsp = train.attention %3, %4, %5 scale 1.0 bshd : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return %o, %p : tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>
}
