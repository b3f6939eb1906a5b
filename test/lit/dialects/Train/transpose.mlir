// RUN: ds-opt %s | ds-opt | FileCheck %s
// RUN: ds-opt %s --canonicalize | FileCheck %s --check-prefix=FOLD

// Tests that result dimension i is input dimension perm[i].
// CHECK-LABEL: func.func @transposes
func.func @transposes(%x: tensor<2x3x4xf32>, %s: tensor<f32>) -> tensor<4x2x3xf32> {
  // CHECK: train.transpose %{{.*}} by [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %0 = train.transpose %x by [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  // CHECK: train.transpose %{{.*}} by [] : (tensor<f32>) -> tensor<f32>
  %1 = train.transpose %s by [] : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<4x2x3xf32>
}

// Tests that permutations compose, and vanish where they compose to nothing.
// FOLD-LABEL: func.func @fold_composed
// FOLD-SAME:    (%[[X:.*]]: tensor<2x3x4xf32>)
func.func @fold_composed(%x: tensor<2x3x4xf32>) -> (tensor<3x4x2xf32>, tensor<2x3x4xf32>) {
  %0 = train.transpose %x by [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  // FOLD-NEXT: %[[Y:.*]] = train.transpose %[[X]] by [1, 2, 0] : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = train.transpose %0 by [2, 0, 1] : (tensor<4x2x3xf32>) -> tensor<3x4x2xf32>
  %2 = train.transpose %0 by [1, 2, 0] : (tensor<4x2x3xf32>) -> tensor<2x3x4xf32>
  // FOLD-NEXT: return %[[Y]], %[[X]]
  return %1, %2 : tensor<3x4x2xf32>, tensor<2x3x4xf32>
}
