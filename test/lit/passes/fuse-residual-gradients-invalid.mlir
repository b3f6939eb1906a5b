// This pass has no error of its own; here is what it must leave alone.
// RUN: ds-opt %s --ds-fuse-residual-gradients | FileCheck %s
// CHECK-COUNT-4: train.add

// Tests a gradient that another op reads, too.
func.func @read_twice(%r: tensor<6x8xf32>, %x: tensor<6x8xf32>, %g: tensor<8xf32>, %s: tensor<6xf32>) -> (tensor<6x8xf32>, tensor<6x8xf32>) {
  %0:2 = train.rms_norm_grad %x, %x, %g, %s : (tensor<6x8xf32>, tensor<6x8xf32>, tensor<8xf32>, tensor<6xf32>) -> (tensor<6x8xf32>, tensor<8xf32>)
  %1 = train.add %r, %0#0 : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  return %0#0, %1 : tensor<6x8xf32>, tensor<6x8xf32>
}

// Tests what is broadcast, and what is made after the norm's gradient.
func.func @broadcast(%r: tensor<8xf32>, %x: tensor<6x8xf32>, %g: tensor<8xf32>, %s: tensor<6xf32>) -> tensor<6x8xf32> {
  %0:2 = train.rms_norm_grad %x, %x, %g, %s : (tensor<6x8xf32>, tensor<6x8xf32>, tensor<8xf32>, tensor<6xf32>) -> (tensor<6x8xf32>, tensor<8xf32>)
  %1 = train.add %r, %0#0 : (tensor<8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  return %1 : tensor<6x8xf32>
}
func.func @later(%x: tensor<6x8xf32>, %g: tensor<8xf32>, %s: tensor<6xf32>) -> tensor<6x8xf32> {
  %0:2 = train.rms_norm_grad %x, %x, %g, %s : (tensor<6x8xf32>, tensor<6x8xf32>, tensor<8xf32>, tensor<6xf32>) -> (tensor<6x8xf32>, tensor<8xf32>)
  %1 = train.exp %x : (tensor<6x8xf32>) -> tensor<6x8xf32>
  %2 = train.add %0#0, %1 : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  return %2 : tensor<6x8xf32>
}

// Tests a gradient that has a residual already.
func.func @second(%r: tensor<6x8xf32>, %x: tensor<6x8xf32>, %g: tensor<8xf32>, %s: tensor<6xf32>) -> tensor<6x8xf32> {
  %0:2 = train.rms_norm_grad %x, %x, %g, %s, %r : (tensor<6x8xf32>, tensor<6x8xf32>, tensor<8xf32>, tensor<6xf32>, tensor<6x8xf32>) -> (tensor<6x8xf32>, tensor<8xf32>)
  %1 = train.add %r, %0#0 : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  return %1 : tensor<6x8xf32>
}
