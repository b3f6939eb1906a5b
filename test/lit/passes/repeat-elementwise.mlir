// RUN: ds-opt %s --ds-repeat-elementwise | FileCheck %s
// RUN: ds-opt %s --ds-repeat-elementwise=once | FileCheck %s --check-prefix=ONCE
// RUN: ds-opt %s --ds-repeat-elementwise=keep-operands | FileCheck %s --check-prefix=KEPT

// Tests that what elementwise ops make of a value the backward has anyway is made again behind the seed, once, and that
// the results of other ops are kept.
train.variable metric @a : tensor<4xf32>
train.variable metric @b : tensor<4x4xf32>
train.variable metric @c : tensor<2x2xf32>
// CHECK-LABEL: func.func @microbatch
// CHECK:       %[[CUBE:.*]] = train.mul %[[SQUARE:.*]], %arg0
// CHECK:       %[[PRODUCT:.*]] = train.matmul
// CHECK:       %[[SUM:.*]] = train.add %[[PRODUCT]],
// CHECK:       train.loss_gradient
// CHECK-NEXT:  %[[SQUARE2:.*]] = train.mul %arg0, %arg0
// CHECK-NEXT:  %[[CUBE2:.*]] = train.mul %[[SQUARE2]], %arg0
// CHECK-NEXT:  train.store %[[CUBE2]] into @a
// CHECK-NEXT:  %[[VIEW:.*]] = train.reshape %[[CUBE2]]
// CHECK-NEXT:  train.store %[[VIEW]] into @c
// CHECK-NEXT:  train.store %[[SUM]] into @b
func.func @microbatch(%x: tensor<4xf32>, %w: tensor<4x4xf32>) {
  %one = train.constant dense<1.0> : tensor<f32>
  %0 = train.mul %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = train.mul %0, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = train.matmul %w, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = train.add %2, %one : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %4 = train.reshape %1 to [2, 2] : (tensor<4xf32>) -> tensor<2x2xf32>
  %g = train.loss_gradient 1.0 : tensor<f32>
  train.store %1 into @a : tensor<4xf32>
  train.store %4 into @c : tensor<2x2xf32>
  train.store %3 into @b : tensor<4x4xf32>
  return
}

// Elementwise readers have a chain of their own, so that one loop may go from %x to what they compute.
// CHECK-LABEL: func.func @evaluate
// CHECK:       train.loss_gradient
// CHECK-NEXT:  %[[FIRST:.*]] = train.mul %arg0, %arg0
// CHECK-NEXT:  %[[PRODUCT:.*]] = train.matmul %[[FIRST]], %arg0
// CHECK-NEXT:  %[[SECOND:.*]] = train.mul %arg0, %arg0
// CHECK-NEXT:  %[[SUM:.*]] = train.add %[[PRODUCT]], %[[SECOND]]
// CHECK-NEXT:  train.mul %[[SUM]], %[[SECOND]]
// ONCE-LABEL:  func.func @evaluate
// ONCE:        train.loss_gradient
// ONCE-NEXT:   %[[COPY:.*]] = train.mul %arg0, %arg0
// ONCE-NEXT:   %[[PRODUCT:.*]] = train.matmul %[[COPY]], %arg0
// ONCE-NEXT:   %[[SUM:.*]] = train.add %[[PRODUCT]], %[[COPY]]
// ONCE-NEXT:   train.mul %[[SUM]], %[[COPY]]
func.func @evaluate(%x: tensor<4x4xf32>) {
  %0 = train.mul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %g = train.loss_gradient 1.0 : tensor<f32>
  %1 = train.matmul %0, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = train.add %1, %0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = train.mul %2, %0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  train.store %3 into @b : tensor<4x4xf32>
  return
}

// Products read what is kept, if that is asked for, and loops make it again; what is made of inputs alone is never kept.
// KEPT-LABEL:  func.func @kept
// KEPT:        %[[PRODUCT:.*]] = train.matmul
// KEPT:        %[[SQUARE:.*]] = train.mul %[[PRODUCT]], %[[PRODUCT]]
// KEPT:        train.loss_gradient
// KEPT-NEXT:   %[[OF_INPUT:.*]] = train.exp %arg0
// KEPT-NEXT:   %[[A:.*]] = train.matmul %[[SQUARE]], %[[OF_INPUT]]
// KEPT-NEXT:   %[[COPY:.*]] = train.mul %[[PRODUCT]], %[[PRODUCT]]
// KEPT-NEXT:   train.add %[[A]], %[[COPY]]
func.func @kept(%x: tensor<4x4xf32>) {
  %p = train.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %0 = train.mul %p, %p : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %e = train.exp %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %g = train.loss_gradient 1.0 : tensor<f32>
  %1 = train.matmul %0, %e : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = train.add %1, %0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = train.mul %2, %p : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  train.store %3 into @b : tensor<4x4xf32>
  return
}

// Of what is widened to f32 the 16 bits are kept.
// CHECK-LABEL: func.func @widened
// CHECK:       %[[LOW:.*]] = train.matmul
// CHECK:       train.loss_gradient
// CHECK-NEXT:  %[[WIDE:.*]] = train.cast %[[LOW]] to f32
// CHECK-NEXT:  train.store %[[WIDE]]
func.func @widened(%x: tensor<4x4xbf16>) {
  %p = train.matmul %x, %x : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> tensor<4x4xbf16>
  %0 = train.cast %p to f32 : (tensor<4x4xbf16>) -> tensor<4x4xf32>
  %1 = train.exp %0 : (tensor<4x4xf32>) -> tensor<4x4xf32>
  train.store %1 into @b : tensor<4x4xf32>
  %g = train.loss_gradient 1.0 : tensor<f32>
  train.store %0 into @b : tensor<4x4xf32>
  return
}

// So are those of a chain of elementwise ops, as a softcap of logits or a z-loss is, where they have fewer bytes: not of
// a sum of two tensors, nor where a product of f32 is among them.
// CHECK-LABEL: func.func @chain
// CHECK:       %[[LOW:.*]] = train.matmul
// CHECK:       %[[MAX:.*]] = train.reduce_max %[[LOW]]
// CHECK:       %[[SUM:.*]] = train.add
// CHECK:       %[[FULL:.*]] = train.mul
// CHECK:       train.loss_gradient
// CHECK-NEXT:  %[[WIDE:.*]] = train.cast %[[LOW]] to f32
// CHECK-NEXT:  %[[WIDE_MAX:.*]] = train.cast %[[MAX]] to f32
// CHECK-NEXT:  %[[BELOW:.*]] = train.sub %[[WIDE]], %[[WIDE_MAX]]
// CHECK-NEXT:  %[[EXP:.*]] = train.exp %[[BELOW]]
// CHECK-NEXT:  train.store %[[EXP]]
// CHECK-NEXT:  train.store %[[SUM]]
// CHECK-NEXT:  train.store %[[FULL]]
func.func @chain(%x: tensor<4x4xbf16>, %y: tensor<4x4xf32>) {
  %p = train.matmul %x, %x : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> tensor<4x4xbf16>
  %q = train.matmul %x, %x : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> tensor<4x4xbf16>
  %r = train.matmul %y, %y : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %m = train.reduce_max %p over [0] : (tensor<4x4xbf16>) -> tensor<4xbf16>
  %0 = train.cast %p to f32 : (tensor<4x4xbf16>) -> tensor<4x4xf32>
  %1 = train.cast %m to f32 : (tensor<4xbf16>) -> tensor<4xf32>
  %2 = train.sub %0, %1 : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %3 = train.exp %2 : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = train.cast %q to f32 : (tensor<4x4xbf16>) -> tensor<4x4xf32>
  %5 = train.add %0, %4 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %6 = train.mul %4, %r : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %g = train.loss_gradient 1.0 : tensor<f32>
  train.store %3 into @b : tensor<4x4xf32>
  train.store %5 into @b : tensor<4x4xf32>
  train.store %6 into @b : tensor<4x4xf32>
  return
}
