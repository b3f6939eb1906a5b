// RUN: ds-opt %s --ds-declare-mesh --ds-outline-fragments --split-input-file | FileCheck %s

// Tests the cut: the backward takes what the forward computed and inputs by name, and repeats reads, reshapes, constants.
// CHECK-LABEL: module {
// CHECK-NOT:   func.func
// CHECK:       dist.value @x : tensor<2x3xf32> input "x" {train.limit = 9 : i64, train.tokens = "same"}
// CHECK-LABEL: dist.fragment @feed phase feed stage 0 {
// CHECK-NEXT:    dist.feed @x
// CHECK-NEXT:  }
// CHECK-NEXT:  dist.value @value : tensor<6xf32>
// CHECK-LABEL: dist.fragment @forward phase forward stage 0 {
// CHECK-NEXT:    %[[W:.*]] = train.read @w
// CHECK-NEXT:    %[[X:.*]] = dist.load @x
// CHECK-NEXT:    %[[FLAT:.*]] = train.reshape %[[X]]
// CHECK-NEXT:    %[[E:.*]] = train.mul %[[FLAT]], %[[W]]
// CHECK-NEXT:    dist.store %[[E]] as @value
// CHECK-NEXT:    %[[SUM:.*]] = train.reduce_sum %[[E]]
// CHECK-NEXT:    train.store %[[SUM]] into @loss
// CHECK-NEXT:  }
// CHECK-LABEL: dist.fragment @backward phase backward stage 0 {
// CHECK-NEXT:    %[[SEED:.*]] = train.loss_gradient
// CHECK-NEXT:    %[[KEPT:.*]] = dist.load @value
// CHECK-NEXT:    %[[A:.*]] = train.mul %[[KEPT]], %[[SEED]]
// CHECK-NEXT:    %[[X2:.*]] = dist.load @x
// CHECK-NEXT:    %[[FLAT2:.*]] = train.reshape %[[X2]]
// CHECK-NEXT:    %[[B:.*]] = train.mul %[[A]], %[[FLAT2]]
// CHECK-NEXT:    %[[W2:.*]] = train.read @w
// CHECK-NEXT:    %[[C:.*]] = train.mul %[[B]], %[[W2]]
// CHECK-NEXT:    train.store %[[C]] into @"w::gradient"
// CHECK-NEXT:  }
// CHECK-LABEL: dist.fragment @update phase update pipe 0 {
// CHECK-LABEL: dist.fragment @evaluate phase evaluate stage 0 {
// CHECK-NEXT:    %[[XE:.*]] = dist.load @x
// CHECK-NEXT:    train.exp %[[XE]]
train.variable parameter @w : tensor<6xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"w::gradient" of @w : tensor<6xf32>
train.variable metric @loss : tensor<f32>
func.func @microbatch(%x: tensor<2x3xf32> {train.input = "x", train.tokens = "same", train.limit = 9 : i64}) {
  %w = train.read @w : tensor<6xf32>
  %flat = train.reshape %x to [6] : (tensor<2x3xf32>) -> tensor<6xf32>
  %0 = train.mul %flat, %w : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  %1 = train.reduce_sum %0 over [0] : (tensor<6xf32>) -> tensor<f32>
  train.store %1 into @loss : tensor<f32>
  %2 = train.loss_gradient 1.0 : tensor<f32>
  %3 = train.mul %0, %2 : (tensor<6xf32>, tensor<f32>) -> tensor<6xf32>
  %4 = train.mul %3, %flat : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  %5 = train.mul %4, %w : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  train.store %5 into @"w::gradient" : tensor<6xf32>
  return
}
func.func @update() {
  return
}
func.func @evaluate(%x: tensor<2x3xf32>) {
  %0 = train.exp %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

// Tests that kept values have names of their own: two of one location, and inputs called like fragments or a variable.
// CHECK-LABEL: module {
// CHECK-DAG:   dist.value @"forward::value" : tensor<f32> input "forward"
// CHECK-DAG:   dist.value @w_0 : tensor<f32> input "w"
// CHECK-DAG:   dist.value @h : tensor<f32>
// CHECK-DAG:   dist.value @h_1 : tensor<f32>
// CHECK-LABEL: dist.fragment @forward phase forward stage 0 {
// CHECK:         dist.store %{{.*}} as @h
// CHECK:         dist.store %{{.*}} as @h_1
// CHECK-LABEL: dist.fragment @backward phase backward stage 0 {
// CHECK:         dist.load @h :
// CHECK:         dist.load @h_1 :
train.variable parameter @w : tensor<f32> from #train.fill<0.0> {trainable}
func.func @microbatch(%x: tensor<f32> {train.input = "forward"}, %y: tensor<f32> {train.input = "w"}) {
  %0 = train.exp %x : (tensor<f32>) -> tensor<f32> loc("h")
  %1 = train.exp %y : (tensor<f32>) -> tensor<f32> loc("h")
  %2 = train.loss_gradient 1.0 : tensor<f32>
  %3 = train.mul %0, %1 : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return
}
func.func @update() {
  return
}
func.func @evaluate(%x: tensor<f32>, %y: tensor<f32>) {
  return
}

// -----

// Tests that a read of a variable that the step writes is kept: read again it would see the new value.
// CHECK-LABEL: dist.fragment @forward phase forward stage 0 {
// CHECK-NEXT:    %[[OLD:.*]] = train.read @mean
// CHECK-NEXT:    dist.store %[[OLD]] as @value
// CHECK:         train.store
// CHECK-LABEL: dist.fragment @backward phase backward stage 0 {
// CHECK-NOT:     train.read
// CHECK:         dist.load @value
train.variable buffer @mean : tensor<f32> from #train.fill<0.0>
func.func @microbatch(%x: tensor<f32>) {
  %0 = train.read @mean : tensor<f32>
  %1 = train.add %0, %x : (tensor<f32>, tensor<f32>) -> tensor<f32>
  train.store %1 into @mean : tensor<f32>
  %2 = train.loss_gradient 1.0 : tensor<f32>
  %3 = train.mul %0, %2 : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return
}
func.func @update() {
  return
}
func.func @evaluate(%x: tensor<f32>) {
  return
}
