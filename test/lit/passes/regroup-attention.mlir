// RUN: ds-opt %s --ds-regroup-attention --split-input-file | FileCheck %s

// Tests the eager form: a scale behind the product and an added mask.
// CHECK-LABEL: func.func @eager
// CHECK-NEXT:  %[[Y:.*]], %{{.*}} = train.attention %arg0, %arg1, %arg2 mask %arg3 scale 2.500000e-01 :
// CHECK-NEXT:  return %[[Y]]
func.func @eager(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x5x8xf32>, %v: tensor<2x4x5x6xf32>, %m: tensor<2x1x3x5xf32>) -> tensor<2x4x3x6xf32> {
  %c = train.constant dense<0.25> : tensor<f32>
  %0 = train.matmul %q, %k transposed : (tensor<2x4x3x8xf32>, tensor<2x4x5x8xf32>) -> tensor<2x4x3x5xf32>
  %1 = train.mul %0, %c : (tensor<2x4x3x5xf32>, tensor<f32>) -> tensor<2x4x3x5xf32>
  %2 = train.add %1, %m : (tensor<2x4x3x5xf32>, tensor<2x1x3x5xf32>) -> tensor<2x4x3x5xf32>
  %3 = train.softmax %2 along 3 : (tensor<2x4x3x5xf32>) -> tensor<2x4x3x5xf32>
  %4 = train.matmul %3, %v : (tensor<2x4x3x5xf32>, tensor<2x4x5x6xf32>) -> tensor<2x4x3x6xf32>
  return %4 : tensor<2x4x3x6xf32>
}

// -----

// Tests torch's scaled_dot_product_attention: half of the scale on either side, the key transposed with its leading
// dimensions merged, groups repeated, a causal constant, and zeros in place of NaN.
// CHECK-LABEL: func.func @sdpa
// CHECK-NEXT:  %[[Y:.*]], %{{.*}} = train.attention %arg0, %arg1, %arg2 scale 2.500000e-01 causal :
// CHECK-SAME:  (tensor<2x4x2x8xf32>, tensor<2x2x2x8xf32>, tensor<2x2x2x8xf32>)
// CHECK-NEXT:  return %[[Y]]
func.func @sdpa(%q: tensor<2x4x2x8xf32>, %k: tensor<2x2x2x8xf32>, %v: tensor<2x2x2x8xf32>) -> tensor<2x4x2x8xf32> {
  %half = train.constant dense<0.5> : tensor<f32>
  %zero = train.constant dense<0.0> : tensor<f32>
  %m = train.constant dense<[[0.0, 0xFF800000], [0.0, 0.0]]> : tensor<2x2xf32>
  %k0 = train.reshape %k to [2, 2, 1, 2, 8] : (tensor<2x2x2x8xf32>) -> tensor<2x2x1x2x8xf32>
  %k1 = train.broadcast %k0 to [2, 2, 2, 2, 8] : (tensor<2x2x1x2x8xf32>) -> tensor<2x2x2x2x8xf32>
  %k2 = train.reshape %k1 to [2, 4, 2, 8] : (tensor<2x2x2x2x8xf32>) -> tensor<2x4x2x8xf32>
  %v0 = train.reshape %v to [2, 2, 1, 2, 8] : (tensor<2x2x2x8xf32>) -> tensor<2x2x1x2x8xf32>
  %v1 = train.broadcast %v0 to [2, 2, 2, 2, 8] : (tensor<2x2x1x2x8xf32>) -> tensor<2x2x2x2x8xf32>
  %v2 = train.reshape %v1 to [2, 4, 2, 8] : (tensor<2x2x2x2x8xf32>) -> tensor<2x4x2x8xf32>
  %k3 = train.reshape %k2 to [8, 2, 8] : (tensor<2x4x2x8xf32>) -> tensor<8x2x8xf32>
  %k4 = train.transpose %k3 by [0, 2, 1] : (tensor<8x2x8xf32>) -> tensor<8x8x2xf32>
  %k5 = train.reshape %k4 to [2, 4, 8, 2] : (tensor<8x8x2xf32>) -> tensor<2x4x8x2xf32>
  %0 = train.mul %q, %half : (tensor<2x4x2x8xf32>, tensor<f32>) -> tensor<2x4x2x8xf32>
  %1 = train.mul %k5, %half : (tensor<2x4x8x2xf32>, tensor<f32>) -> tensor<2x4x8x2xf32>
  %2 = train.matmul %0, %1 : (tensor<2x4x2x8xf32>, tensor<2x4x8x2xf32>) -> tensor<2x4x2x2xf32>
  %3 = train.add %2, %m : (tensor<2x4x2x2xf32>, tensor<2x2xf32>) -> tensor<2x4x2x2xf32>
  %4 = train.softmax %3 along 3 : (tensor<2x4x2x2xf32>) -> tensor<2x4x2x2xf32>
  %5 = train.is_nan %4 : (tensor<2x4x2x2xf32>) -> tensor<2x4x2x2xi1>
  %6 = train.select %5, %zero, %4 : (tensor<2x4x2x2xi1>, tensor<f32>, tensor<2x4x2x2xf32>) -> tensor<2x4x2x2xf32>
  %7 = train.matmul %6, %v2 : (tensor<2x4x2x2xf32>, tensor<2x4x2x8xf32>) -> tensor<2x4x2x8xf32>
  return %7 : tensor<2x4x2x8xf32>
}

// -----

// Tests a boolean mask that hides where it is true, beneath a causal one, and a divisor.
// CHECK-LABEL: func.func @masked_fill
// CHECK-NEXT:  %[[SEEN:.*]] = train.not %arg2
// CHECK-NEXT:  train.attention %arg0, %arg1, %arg1 mask %[[SEEN]] scale 5.000000e-01 causal :
// CHECK-NEXT:  return
func.func @masked_fill(%q: tensor<1x2x2x4xf32>, %k: tensor<1x2x2x4xf32>, %hidden: tensor<1x1x1x2xi1>) -> tensor<1x2x2x4xf32> {
  %two = train.constant dense<2.0> : tensor<f32>
  %low = train.constant dense<0xFF7FFFFF> : tensor<f32>
  %seen = train.constant dense<[[[[true, false], [true, true]]]]> : tensor<1x1x2x2xi1>
  %t = train.transpose %k by [0, 1, 3, 2] : (tensor<1x2x2x4xf32>) -> tensor<1x2x4x2xf32>
  %0 = train.matmul %q, %t : (tensor<1x2x2x4xf32>, tensor<1x2x4x2xf32>) -> tensor<1x2x2x2xf32>
  %1 = train.div %0, %two : (tensor<1x2x2x2xf32>, tensor<f32>) -> tensor<1x2x2x2xf32>
  %2 = train.select %hidden, %low, %1 : (tensor<1x1x1x2xi1>, tensor<f32>, tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32>
  %3 = train.select %seen, %2, %low : (tensor<1x1x2x2xi1>, tensor<1x2x2x2xf32>, tensor<f32>) -> tensor<1x2x2x2xf32>
  %4 = train.softmax %3 along 3 : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32>
  %5 = train.matmul %4, %k : (tensor<1x2x2x2xf32>, tensor<1x2x2x4xf32>) -> tensor<1x2x2x4xf32>
  return %5 : tensor<1x2x2x4xf32>
}

// -----

// Tests grouped queries as torch's scaled_dot_product_attention writes them once reshapes of reshapes are one: the key's
// repeats go into merged heads directly.
// CHECK-LABEL: func.func @merged_groups
// CHECK-NEXT:  %[[Y:.*]], %{{.*}} = train.attention %arg0, %arg1, %arg1 scale 1.000000e+00 :
// CHECK-SAME:  (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>)
// CHECK-NEXT:  return %[[Y]]
func.func @merged_groups(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>) -> tensor<2x4x3x8xf32> {
  %0 = train.reshape %k to [2, 2, 1, 5, 8] : (tensor<2x2x5x8xf32>) -> tensor<2x2x1x5x8xf32>
  %1 = train.broadcast %0 to [2, 2, 2, 5, 8] : (tensor<2x2x1x5x8xf32>) -> tensor<2x2x2x5x8xf32>
  %2 = train.reshape %1 to [2, 4, 5, 8] : (tensor<2x2x2x5x8xf32>) -> tensor<2x4x5x8xf32>
  %3 = train.reshape %1 to [8, 5, 8] : (tensor<2x2x2x5x8xf32>) -> tensor<8x5x8xf32>
  %4 = train.transpose %3 by [0, 2, 1] : (tensor<8x5x8xf32>) -> tensor<8x8x5xf32>
  %5 = train.reshape %4 to [2, 4, 8, 5] : (tensor<8x8x5xf32>) -> tensor<2x4x8x5xf32>
  %6 = train.matmul %q, %5 : (tensor<2x4x3x8xf32>, tensor<2x4x8x5xf32>) -> tensor<2x4x3x5xf32>
  %7 = train.softmax %6 along 3 : (tensor<2x4x3x5xf32>) -> tensor<2x4x3x5xf32>
  %8 = train.matmul %7, %2 : (tensor<2x4x3x5xf32>, tensor<2x4x5x8xf32>) -> tensor<2x4x3x8xf32>
  return %8 : tensor<2x4x3x8xf32>
}

// -----

// Tests one group for all heads: split off a projection without a dimension of its own, and repeated without a merge.
// CHECK-LABEL: func.func @one_group
// CHECK-NEXT:  %[[K:.*]] = train.reshape %arg1 to [2, 1, 5, 8]
// CHECK-NEXT:  %[[Y:.*]], %{{.*}} = train.attention %arg0, %[[K]], %arg2 scale 1.000000e+00 :
// CHECK-SAME:  (tensor<2x4x3x8xf32>, tensor<2x1x5x8xf32>, tensor<2x1x5x8xf32>)
// CHECK-NEXT:  return %[[Y]]
func.func @one_group(%q: tensor<2x4x3x8xf32>, %k: tensor<2x5x8xf32>, %v: tensor<2x1x5x8xf32>) -> tensor<2x4x3x8xf32> {
  %0 = train.reshape %k to [2, 1, 1, 5, 8] : (tensor<2x5x8xf32>) -> tensor<2x1x1x5x8xf32>
  %1 = train.broadcast %0 to [2, 1, 4, 5, 8] : (tensor<2x1x1x5x8xf32>) -> tensor<2x1x4x5x8xf32>
  %2 = train.reshape %1 to [2, 4, 5, 8] : (tensor<2x1x4x5x8xf32>) -> tensor<2x4x5x8xf32>
  %3 = train.broadcast %v to [2, 4, 5, 8] : (tensor<2x1x5x8xf32>) -> tensor<2x4x5x8xf32>
  %4 = train.matmul %q, %2 transposed : (tensor<2x4x3x8xf32>, tensor<2x4x5x8xf32>) -> tensor<2x4x3x5xf32>
  %5 = train.softmax %4 along 3 : (tensor<2x4x3x5xf32>) -> tensor<2x4x3x5xf32>
  %6 = train.matmul %5, %3 : (tensor<2x4x3x5xf32>, tensor<2x4x5x8xf32>) -> tensor<2x4x3x8xf32>
  return %6 : tensor<2x4x3x8xf32>
}

// -----

// Tests that zeros for a query that sees no key, and zeros in place of NaN around them, belong to the attention.
// CHECK-LABEL: func.func @hidden_rows
// CHECK-NEXT:  %[[Y:.*]], %{{.*}} = train.attention %arg0, %arg1, %arg2 mask %arg3 scale 1.000000e+00 :
// CHECK-NEXT:  return %[[Y]]
func.func @hidden_rows(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x5x8xf32>, %v: tensor<2x4x5x6xf32>, %m: tensor<2x1x3x5xf32>) -> tensor<2x4x3x6xf32> {
  %zero = train.constant dense<0.0> : tensor<f32>
  %nothing = train.constant dense<0xFF800000> : tensor<f32>
  %0 = train.matmul %q, %k transposed : (tensor<2x4x3x8xf32>, tensor<2x4x5x8xf32>) -> tensor<2x4x3x5xf32>
  %1 = train.add %0, %m : (tensor<2x4x3x5xf32>, tensor<2x1x3x5xf32>) -> tensor<2x4x3x5xf32>
  %2 = train.reduce_max %1 over [3] : (tensor<2x4x3x5xf32>) -> tensor<2x4x3xf32>
  %3 = train.reshape %2 to [2, 4, 3, 1] : (tensor<2x4x3xf32>) -> tensor<2x4x3x1xf32>
  %4 = train.equal %3, %nothing : (tensor<2x4x3x1xf32>, tensor<f32>) -> tensor<2x4x3x1xi1>
  %5 = train.select %4, %zero, %1 : (tensor<2x4x3x1xi1>, tensor<f32>, tensor<2x4x3x5xf32>) -> tensor<2x4x3x5xf32>
  %6 = train.softmax %5 along 3 : (tensor<2x4x3x5xf32>) -> tensor<2x4x3x5xf32>
  %7 = train.select %4, %zero, %6 : (tensor<2x4x3x1xi1>, tensor<f32>, tensor<2x4x3x5xf32>) -> tensor<2x4x3x5xf32>
  %8 = train.is_nan %7 : (tensor<2x4x3x5xf32>) -> tensor<2x4x3x5xi1>
  %9 = train.select %8, %zero, %7 : (tensor<2x4x3x5xi1>, tensor<f32>, tensor<2x4x3x5xf32>) -> tensor<2x4x3x5xf32>
  %10 = train.matmul %9, %v : (tensor<2x4x3x5xf32>, tensor<2x4x5x6xf32>) -> tensor<2x4x3x6xf32>
  return %10 : tensor<2x4x3x6xf32>
}
