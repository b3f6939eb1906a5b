// RUN: ds-opt %s --ds-fuse-elementwise | FileCheck %s
// RUN: ds-opt %s --ds-fuse-elementwise=max-ops=2 | FileCheck %s --check-prefix=TWO
// RUN: ds-opt %s --ds-fuse-elementwise=max-operands=2 | FileCheck %s --check-prefix=NARROW

// Tests a chain: one loop at the place of its last op.
// CHECK-LABEL: func.func @chain
// CHECK-NEXT:  %[[Y:.*]] = train.fused %arg0 {
// CHECK-NEXT:  ^bb0(%[[A:.*]]: tensor<4xf32>):
// CHECK-NEXT:    %[[M:.*]] = train.mul %[[A]], %[[A]]
// CHECK-NEXT:    %[[T:.*]] = train.tanh %[[M]]
// CHECK-NEXT:    %[[N:.*]] = train.neg %[[T]]
// CHECK-NEXT:    train.yield %[[N]]
// CHECK-NEXT:  } : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:  return %[[Y]]
// TWO-LABEL: func.func @chain
// TWO:       train.fused
// TWO:         train.tanh
// TWO-NEXT:    train.yield
// TWO:       train.neg
// TWO-NEXT:  return
func.func @chain(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = train.mul %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = train.tanh %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = train.neg %1 : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// Tests that what is read outside becomes a result, of any element type.
// CHECK-LABEL: func.func @results
// CHECK-NEXT:  %[[F:.*]]:2 = train.fused
// CHECK:       } : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi1>)
// CHECK-NEXT:  return %[[F]]#0, %[[F]]#1
func.func @results(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi1>) {
  %0 = train.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = train.is_nan %0 : (tensor<4xf32>) -> tensor<4xi1>
  return %0, %1 : tensor<4xf32>, tensor<4xi1>
}

// Tests that a reader outside that comes before the op keeps it out: the group could stand neither before nor after it.
// CHECK-LABEL: func.func @reader_between
// CHECK-NEXT:  %[[E:.*]] = train.exp
// CHECK-NEXT:  %[[S:.*]] = train.softmax %[[E]]
// CHECK-NEXT:  train.add %[[E]], %[[S]]
func.func @reader_between(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = train.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = train.softmax %0 along 0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = train.add %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// Tests that a reader outside that comes after does not.
// CHECK-LABEL: func.func @reader_after
// CHECK-NEXT:  %[[F:.*]]:2 = train.fused
// CHECK:       train.softmax %[[F]]#0
func.func @reader_after(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = train.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = train.neg %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = train.softmax %0 along 0 : (tensor<4xf32>) -> tensor<4xf32>
  return %1, %2 : tensor<4xf32>, tensor<4xf32>
}

// Tests two interleaved chains: each waits for its own last op, and a later reader of both follows.
// CHECK-LABEL: func.func @interleaved
// CHECK-NEXT:  %[[A:.*]] = train.fused %arg0
// CHECK:         train.exp
// CHECK-NEXT:    train.sin
// CHECK:       %[[B:.*]] = train.fused %arg1
// CHECK:         train.tanh
// CHECK-NEXT:    train.cos
// CHECK:       train.concat %[[A]], %[[B]]
func.func @interleaved(%x: tensor<4xf32>, %y: tensor<5xf32>) -> tensor<9xf32> {
  %a0 = train.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %b0 = train.tanh %y : (tensor<5xf32>) -> tensor<5xf32>
  %a1 = train.sin %a0 : (tensor<4xf32>) -> tensor<4xf32>
  %b1 = train.cos %b0 : (tensor<5xf32>) -> tensor<5xf32>
  %c = train.concat %a1, %b1 along 0 : (tensor<4xf32>, tensor<5xf32>) -> tensor<9xf32>
  return %c : tensor<9xf32>
}

// Tests that two chains that meet become one loop.
// CHECK-LABEL: func.func @meeting
// CHECK-NEXT:  train.fused %arg0, %arg1
// CHECK:         train.exp
// CHECK-NEXT:    train.tanh
// CHECK-NEXT:    train.sin
// CHECK-NEXT:    train.cos
// CHECK-NEXT:    train.mul
// CHECK-NOT:   train.fused
// CHECK:       return
func.func @meeting(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %a0 = train.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %b0 = train.tanh %y : (tensor<4xf32>) -> tensor<4xf32>
  %a1 = train.sin %a0 : (tensor<4xf32>) -> tensor<4xf32>
  %b1 = train.cos %b0 : (tensor<4xf32>) -> tensor<4xf32>
  %c = train.mul %a1, %b1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %c : tensor<4xf32>
}

// Tests that splat constants go inside, tables stay outside, and a constant that nothing reads any more goes.
// CHECK-LABEL: func.func @constants
// CHECK-NEXT:  %[[TABLE:.*]] = train.constant dense<[1.000000e+00, 2.000000e+00]>
// CHECK-NEXT:  train.fused %arg0, %[[TABLE]] {
// CHECK-NEXT:  ^bb0
// CHECK-NEXT:    train.constant dense<2.000000e+00> : tensor<f32>
// CHECK-NOT:   train.constant
// CHECK:       return
func.func @constants(%x: tensor<2xf32>) -> tensor<2xf32> {
  %two = train.constant dense<2.0> : tensor<f32>
  %table = train.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = train.mul %x, %two : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = train.add %0, %table : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// Tests that an integer that no double holds stays an operand.
// CHECK-LABEL: func.func @large_integer
// CHECK-NEXT:  %[[C:.*]] = train.constant dense<9007199254740993>
// CHECK-NEXT:  train.fused %arg0, %[[C]] {
func.func @large_integer(%x: tensor<2xi64>) -> tensor<2xi64> {
  %c = train.constant dense<9007199254740993> : tensor<i64>
  %0 = train.min %x, %c : (tensor<2xi64>, tensor<i64>) -> tensor<2xi64>
  %1 = train.neg %0 : (tensor<2xi64>) -> tensor<2xi64>
  return %1 : tensor<2xi64>
}

// Tests that a broadcast is read narrow, for an elementwise op broadcasts anyway.
// CHECK-LABEL: func.func @narrow
// CHECK-NOT:   train.broadcast
// CHECK:       train.fused %arg0, %arg1 {
// CHECK:       (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
func.func @narrow(%x: tensor<2x3xf32>, %r: tensor<2x1xf32>) -> tensor<2x3xf32> {
  %0 = train.broadcast %r to [2, 3] : (tensor<2x1xf32>) -> tensor<2x3xf32>
  %1 = train.mul %x, %0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = train.exp %1 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %2 : tensor<2x3xf32>
}

// Tests that the fused op names the reference ops of all its members.
// CHECK-LABEL: func.func @reference
// CHECK:       } {train.reference = array<i64: 3, 5>}
func.func @reference(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = train.exp %x {train.reference = array<i64: 3>} : (tensor<2xf32>) -> tensor<2xf32>
  %1 = train.neg %0 {train.reference = array<i64: 5>} : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// Tests the limit on operands: add reads two and yields one.
// NARROW-LABEL: func.func @operands
// NARROW-NEXT:  train.exp
// NARROW-NEXT:  train.add
func.func @operands(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %0 = train.exp %x : (tensor<2xf32>) -> tensor<2xf32>
  %1 = train.add %0, %y : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// Tests that a chain that nobody reads goes.
// CHECK-LABEL: func.func @dead
// CHECK-NEXT:  return
func.func @dead(%x: tensor<2xf32>) {
  %0 = train.exp %x : (tensor<2xf32>) -> tensor<2xf32>
  %1 = train.neg %0 : (tensor<2xf32>) -> tensor<2xf32>
  return
}
