// This pass has no error of its own; here is what it must leave alone.
// RUN: ds-opt %s --ds-fuse-residual-sums | FileCheck %s
// CHECK-NOT: _of_sum

// Tests a term that is broadcast, a sum that is part of a longer loop, one that is used twice as a term, a norm of the backward pass, and a
// sum of which only what is rounded is read.
func.func @broadcast(%a: tensor<2x4xf32>, %b: tensor<4xf32>, %g: tensor<4xf32>) -> tensor<2x4xf32> {
  %x = train.add %a, %b : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %y:2 = train.rms_norm %x, %g epsilon 1.0e-5 : (tensor<2x4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>)
  return %y#0 : tensor<2x4xf32>
}
func.func @longer(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>, %g: tensor<4xf32>) -> tensor<2x4xf32> {
  %x = train.fused %a, %b {
  ^bb0(%p: tensor<2x4xf32>, %q: tensor<2x4xf32>):
    %0 = train.exp %p : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %1 = train.add %0, %q : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    train.yield %1 : tensor<2x4xf32>
  } : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %y:2 = train.rms_norm %x, %g epsilon 1.0e-5 : (tensor<2x4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>)
  return %y#0 : tensor<2x4xf32>
}
func.func @twice(%a: tensor<2x4xf32>, %g: tensor<4xf32>) -> tensor<2x4xf32> {
  %x = train.add %a, %a : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %y:2 = train.rms_norm %x, %g epsilon 1.0e-5 : (tensor<2x4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>)
  return %y#0 : tensor<2x4xf32>
}
func.func @again(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>, %g: tensor<4xf32>) -> tensor<2x4xf32> {
  %x = train.add %a, %b : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %seed = train.loss_gradient 1.0 : tensor<f32>
  %y:2 = train.rms_norm %x, %g epsilon 1.0e-5 : (tensor<2x4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>)
  return %y#0 : tensor<2x4xf32>
}
func.func @not_in_float32(%a: tensor<2x4xf32>, %b: tensor<2x4xbf16>, %g: tensor<4xf32>) -> tensor<2x4xbf16> {
  %x = train.fused %a, %b {
  ^bb0(%p: tensor<2x4xf32>, %q: tensor<2x4xbf16>):
    %0 = train.cast %q to f32 : (tensor<2x4xbf16>) -> tensor<2x4xf32>
    %1 = train.add %p, %0 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %2 = train.cast %1 to bf16 : (tensor<2x4xf32>) -> tensor<2x4xbf16>
    train.yield %2 : tensor<2x4xbf16>
  } : (tensor<2x4xf32>, tensor<2x4xbf16>) -> tensor<2x4xbf16>
  %y:2 = train.rms_norm %x, %g epsilon 1.0e-5 : (tensor<2x4xbf16>, tensor<4xf32>) -> (tensor<2x4xbf16>, tensor<2xf32>)
  return %y#0 : tensor<2x4xbf16>
}
