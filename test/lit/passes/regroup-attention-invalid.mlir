// This pass has no error of its own; here is what it must leave alone.
// RUN: ds-opt %s --ds-regroup-attention --split-input-file | FileCheck %s

// Tests probabilities that a dropout changes, and some that something else reads.
// CHECK-LABEL: func.func @dropout
// CHECK-NOT:   train.attention
// CHECK:       return
func.func @dropout(%q: tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32> {
  %0 = train.matmul %q, %q transposed : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  %1 = train.softmax %0 along 3 : (tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  %2 = train.dropout %1 ratio 0.5 id 0 : (tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  %3 = train.matmul %2, %q : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  return %3 : tensor<1x1x2x2xf32>
}

// CHECK-LABEL: func.func @two_readers
// CHECK-NOT:   train.attention
// CHECK:       return
func.func @two_readers(%q: tensor<1x1x2x2xf32>) -> (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) {
  %0 = train.matmul %q, %q transposed : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  %1 = train.softmax %0 along 3 : (tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  %2 = train.matmul %1, %q : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  return %1, %2 : tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>
}

// Tests a softmax over another dimension and a product of three dimensions.
// CHECK-LABEL: func.func @other_axis
// CHECK-NOT:   train.attention
// CHECK:       return
func.func @other_axis(%q: tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32> {
  %0 = train.matmul %q, %q transposed : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  %1 = train.softmax %0 along 2 : (tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  %2 = train.matmul %1, %q : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  return %2 : tensor<1x1x2x2xf32>
}

// -----

// Tests a mask that is trained, such as a relative position bias.
train.variable parameter @bias : tensor<2x2xf32> from #train.fill<0.0> {trainable}
// CHECK-LABEL: func.func @trained_mask
// CHECK-NOT:   train.attention
// CHECK:       return
func.func @trained_mask(%q: tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32> {
  %b = train.read @bias : tensor<2x2xf32>
  %0 = train.matmul %q, %q transposed : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  %1 = train.add %0, %b : (tensor<1x1x2x2xf32>, tensor<2x2xf32>) -> tensor<1x1x2x2xf32>
  %2 = train.softmax %1 along 3 : (tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  %3 = train.matmul %2, %q : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  return %3 : tensor<1x1x2x2xf32>
}

// -----

// Tests two masks of which none is causal, and a mask that widens the scores.
// CHECK-LABEL: func.func @two_masks
// CHECK-NOT:   train.attention
// CHECK:       return
func.func @two_masks(%q: tensor<1x1x2x2xf32>, %a: tensor<2x2xf32>, %b: tensor<2x2xf32>) -> tensor<1x1x2x2xf32> {
  %0 = train.matmul %q, %q transposed : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  %1 = train.add %0, %a : (tensor<1x1x2x2xf32>, tensor<2x2xf32>) -> tensor<1x1x2x2xf32>
  %2 = train.add %1, %b : (tensor<1x1x2x2xf32>, tensor<2x2xf32>) -> tensor<1x1x2x2xf32>
  %3 = train.softmax %2 along 3 : (tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  %4 = train.matmul %3, %q : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  return %4 : tensor<1x1x2x2xf32>
}

// CHECK-LABEL: func.func @wide_mask
// CHECK-NOT:   train.attention
// CHECK:       return
func.func @wide_mask(%q: tensor<1x1x2x2xf32>, %v: tensor<3x1x2x2xf32>, %m: tensor<3x1x2x2xf32>) -> tensor<3x1x2x2xf32> {
  %0 = train.matmul %q, %q transposed : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  %1 = train.add %0, %m : (tensor<1x1x2x2xf32>, tensor<3x1x2x2xf32>) -> tensor<3x1x2x2xf32>
  %2 = train.softmax %1 along 3 : (tensor<3x1x2x2xf32>) -> tensor<3x1x2x2xf32>
  %3 = train.matmul %2, %v : (tensor<3x1x2x2xf32>, tensor<3x1x2x2xf32>) -> tensor<3x1x2x2xf32>
  return %3 : tensor<3x1x2x2xf32>
}

// -----

// Tests keys repeated along another dimension than the heads': attention is found, the repeats stay.
// CHECK-LABEL: func.func @repeated_batch
// CHECK:       train.attention {{.*}} : (tensor<2x4x3x8xf32>, tensor<2x4x5x8xf32>, tensor<2x4x5x8xf32>)
// CHECK-NEXT:  return
func.func @repeated_batch(%q: tensor<2x4x3x8xf32>, %k: tensor<1x4x5x8xf32>) -> tensor<2x4x3x8xf32> {
  %0 = train.broadcast %k to [2, 4, 5, 8] : (tensor<1x4x5x8xf32>) -> tensor<2x4x5x8xf32>
  %1 = train.matmul %q, %0 transposed : (tensor<2x4x3x8xf32>, tensor<2x4x5x8xf32>) -> tensor<2x4x3x5xf32>
  %2 = train.softmax %1 along 3 : (tensor<2x4x3x5xf32>) -> tensor<2x4x3x5xf32>
  %3 = train.matmul %2, %0 : (tensor<2x4x3x5xf32>, tensor<2x4x5x8xf32>) -> tensor<2x4x3x8xf32>
  return %3 : tensor<2x4x3x8xf32>
}
