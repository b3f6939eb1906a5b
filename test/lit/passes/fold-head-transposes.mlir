// RUN: ds-opt %s --ds-fold-head-transposes | FileCheck %s

// Tests that transposes around an attention go, with grouped keys, a mask and a causal one; one that something else reads stays for that.
// CHECK-LABEL: func.func @all
// CHECK-NEXT:    %[[K:.*]] = train.transpose %[[Y:[a-z0-9]+]] by
// CHECK-NEXT:    %[[O:.*]], %{{.*}} = train.attention %{{.*}}, %[[Y]], %{{.*}} mask %{{.*}} scale 5.000000e-01 causal bshd : {{.*}} -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
// CHECK-NEXT:    return %[[O]], %[[O]], %[[K]]
func.func @all(%x: tensor<2x16x4x8xf32>, %y: tensor<2x12x2x8xf32>, %z: tensor<2x12x2x8xf32>, %m: tensor<16x12xi1>) -> (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x2x12x8xf32>) {
  %q = train.transpose %x by [0, 2, 1, 3] : (tensor<2x16x4x8xf32>) -> tensor<2x4x16x8xf32>
  %k = train.transpose %y by [0, 2, 1, 3] : (tensor<2x12x2x8xf32>) -> tensor<2x2x12x8xf32>
  %v = train.transpose %z by [0, 2, 1, 3] : (tensor<2x12x2x8xf32>) -> tensor<2x2x12x8xf32>
  %o, %lse = train.attention %q, %k, %v mask %m scale 0.5 causal : (tensor<2x4x16x8xf32>, tensor<2x2x12x8xf32>, tensor<2x2x12x8xf32>, tensor<16x12xi1>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  %t = train.transpose %o by [0, 2, 1, 3] : (tensor<2x4x16x8xf32>) -> tensor<2x16x4x8xf32>
  %u = train.transpose %o by [0, 2, 1, 3] : (tensor<2x4x16x8xf32>) -> tensor<2x16x4x8xf32>
  return %t, %u, %k : tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x2x12x8xf32>
}
