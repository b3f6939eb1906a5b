// RUN: ds-opt %s --ds-differentiate --split-input-file | FileCheck %s

// Tests the three functions, the loss metric, and that an accumulator stands behind its parameter.
// CHECK-LABEL: module {
// CHECK-NEXT: train.variable parameter @w
// CHECK-NEXT: train.variable gradient @"w::gradient" of @w : tensor<3xf32>
// CHECK-NEXT: train.variable metric @loss : tensor<f32>
// CHECK-NOT:  @forward
// CHECK:      func.func @microbatch(%[[X:.*]]: tensor<3xf32> {train.input = "x"}) {
// CHECK-NEXT:   %[[W:.*]] = train.read @w
// CHECK-NEXT:   %[[P:.*]] = train.mul %[[X]], %[[W]]
// CHECK-NEXT:   %[[LOSS:.*]] = train.reduce_sum %[[P]]
// CHECK-NEXT:   train.accumulate %[[LOSS]] into @loss
// CHECK-NEXT:   %[[SEED:.*]] = train.loss_gradient 1.000000e+00 : tensor<f32>
// CHECK-NEXT:   %[[ROW:.*]] = train.reshape %[[SEED]] to [1]
// CHECK-NEXT:   %[[D:.*]] = train.broadcast %[[ROW]] to [3]
// CHECK-NEXT:   %[[DW:.*]] = train.mul %[[D]], %[[X]]
// CHECK-NEXT:   train.accumulate %[[DW]] into @"w::gradient"
// CHECK-NEXT:   return
// CHECK:      func.func @evaluate(%{{.*}}: tensor<3xf32> {train.input = "x"}) {
// CHECK:        train.accumulate %{{.*}} into @loss
// CHECK-NEXT:   return
train.variable parameter @w : tensor<3xf32> from #train.fill<0.0> {trainable}
func.func @forward(%x: tensor<3xf32> {train.input = "x"}) -> tensor<f32> {
  %w = train.read @w : tensor<3xf32>
  %0 = train.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %1 = train.reduce_sum %0 over [0] : (tensor<3xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

// Tests that contributions to a value that is used three times are added in the order in which they are met: last use first.
// CHECK-LABEL: module {
// CHECK:      func.func @microbatch
// CHECK: %[[W:.*]] = train.read @w
// CHECK: %[[SEED:.*]] = train.loss_gradient
// CHECK: %[[A:.*]] = train.mul %[[SEED]], %[[W]]
// CHECK-NEXT: %[[B:.*]] = train.mul %[[SEED]], %{{.*}}
// CHECK-NEXT: %[[C:.*]] = train.mul %[[A]], %[[W]]
// CHECK-NEXT: %[[D:.*]] = train.mul %[[A]], %[[W]]
// CHECK-NEXT: %[[BC:.*]] = train.add %[[B]], %[[C]]
// CHECK-NEXT: %[[BCD:.*]] = train.add %[[BC]], %[[D]]
// CHECK-NEXT: train.accumulate %[[BCD]] into @"w::gradient"
// CHECK-NEXT: return
train.variable parameter @w : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  %w = train.read @w : tensor<f32>
  %0 = train.mul %w, %w : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %1 = train.mul %0, %w : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

// Tests that a tied weight, read twice, has one gradient, accumulated once.
// CHECK-LABEL: module {
// CHECK:      func.func @microbatch
// CHECK: train.read @w
// CHECK-NOT: train.read
// CHECK: %[[SUM:.*]] = train.add
// CHECK: train.accumulate %[[SUM]] into @"w::gradient"
// CHECK-NOT: train.accumulate
// CHECK: func.func @evaluate
train.variable parameter @w : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward(%x: tensor<f32>) -> tensor<f32> {
  %0 = train.read @w : tensor<f32>
  %1 = train.mul %x, %0 : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %2 = train.read @w : tensor<f32>
  %3 = train.mul %1, %2 : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %3 : tensor<f32>
}

// -----

// Tests that nothing is computed for a frozen parameter, one that the loss does not reach, and a graph input.
// CHECK-LABEL: module {
// CHECK: train.variable parameter @frozen
// CHECK-NOT: @"frozen::gradient"
// CHECK: train.variable parameter @unused
// CHECK-NOT: @"unused::gradient"
// CHECK:      func.func @microbatch
// CHECK: %[[F:.*]] = train.read @frozen
// CHECK: %[[SEED:.*]] = train.loss_gradient
// CHECK-NEXT: %[[D:.*]] = train.mul %[[SEED]], %[[F]]
// CHECK-NEXT: %[[DW:.*]] = train.mul %[[D]], %{{.*}}
// CHECK-NEXT: train.accumulate %[[DW]] into @"w::gradient"
// CHECK-NEXT: return
train.variable parameter @frozen : tensor<f32> from #train.fill<0.0>
train.variable parameter @unused : tensor<f32> from #train.fill<0.0> {trainable}
train.variable parameter @w : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward(%x: tensor<f32>) -> tensor<f32> {
  %w = train.read @w : tensor<f32>
  %f = train.read @frozen : tensor<f32>
  %u = train.read @unused : tensor<f32>
  %dead = train.exp %u : (tensor<f32>) -> tensor<f32>
  %0 = train.mul %x, %w : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %1 = train.mul %0, %f : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

// Tests that a loss that is a parameter itself gets the seed.
// CHECK-LABEL: module {
// CHECK:      func.func @microbatch
// CHECK: %[[W:.*]] = train.read @w
// CHECK-NEXT: train.accumulate %[[W]] into @loss
// CHECK-NEXT: %[[SEED:.*]] = train.loss_gradient 1.000000e+00 : tensor<f64>
// CHECK-NEXT: train.accumulate %[[SEED]] into @"w::gradient"
// CHECK-NEXT: return
train.variable parameter @w : tensor<f64> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f64> {
  %w = train.read @w : tensor<f64>
  return %w : tensor<f64>
}

// -----

// Tests that no gradient goes through integers: a condition and an index that depend on the parameter.
// CHECK-LABEL: module {
// CHECK:      func.func @microbatch
// CHECK: %[[W:.*]] = train.read @w
// CHECK: train.loss_gradient
// CHECK-NOT: train.gather_grad
// CHECK-NOT: train.cast
// CHECK: train.accumulate %{{.*}} into @"w::gradient"
// CHECK-NEXT: return
train.variable parameter @w : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward(%table: tensor<5xf32>) -> tensor<f32> {
  %w = train.read @w : tensor<f32>
  %i = train.cast %w to i64 : (tensor<f32>) -> tensor<i64>
  %0 = train.gather %table, %i along 0 : (tensor<5xf32>, tensor<i64>) -> tensor<f32>
  %c = train.less %w, %0 : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %1 = train.select %c, %w, %0 : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

// Tests that no gradient passes a train.stop_gradient, that an op behind it needs none, and that it goes everywhere.
// CHECK-LABEL: module {
// CHECK-NOT:  train.stop_gradient
// CHECK-NOT:  @"v::gradient"
// CHECK:      func.func @microbatch
// CHECK: %[[W:.*]] = train.read @w
// CHECK: %[[E:.*]] = train.floor %[[W]]
// CHECK: %[[V:.*]] = train.read @v
// CHECK: %[[P:.*]] = train.mul %[[E]], %[[V]]
// CHECK: train.mul %[[W]], %[[P]]
// CHECK: %[[SEED:.*]] = train.loss_gradient
// CHECK-NEXT: %[[DW:.*]] = train.mul %[[SEED]], %[[P]]
// CHECK-NEXT: train.accumulate %[[DW]] into @"w::gradient"
// CHECK-NEXT: return
// CHECK:      func.func @evaluate
// CHECK-NOT:  train.stop_gradient
train.variable parameter @w : tensor<f32> from #train.fill<0.0> {trainable}
train.variable parameter @v : tensor<f32> from #train.fill<0.0> {trainable}
func.func @forward() -> tensor<f32> {
  %w = train.read @w : tensor<f32>
  %0 = train.floor %w : (tensor<f32>) -> tensor<f32>
  %v = train.read @v : tensor<f32>
  %1 = train.mul %0, %v : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %2 = train.cast %1 to f32 {train.stop_gradient} : (tensor<f32>) -> tensor<f32>
  %3 = train.mul %w, %2 : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %3 : tensor<f32>
}
