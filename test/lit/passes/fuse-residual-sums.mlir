// RUN: ds-opt %s --ds-fuse-residual-sums | FileCheck %s

// Tests a sum in float32 that later ops read too, of which the norm comes first, with the reference ops of both and the stage.
// CHECK-LABEL: func.func @block
// CHECK-NEXT:    %[[Y:.*]], %[[M:.*]], %[[R:.*]], %[[X:.*]] = train.layer_norm_of_sum %arg0, %arg2, %arg2, %arg1 epsilon {{.*}} {dist.pipeline_stage = 1 : i64, train.reference = array<i64: 5, 4>}
// CHECK-NEXT:    %[[Z:.*]], %{{.*}}, %[[S:.*]] = train.rms_norm_of_sum %[[X]], %arg2, %[[Y]]
// CHECK-NEXT:    return %[[Z]], %[[S]]
func.func @block(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>, %g: tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %x = train.add %a, %b {dist.pipeline_stage = 1 : i64, train.reference = array<i64: 4>} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %y:3 = train.layer_norm %x, %g, %g epsilon 1.0e-5 {dist.pipeline_stage = 1 : i64, train.reference = array<i64: 5>} : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>, tensor<2xf32>)
  %s = train.add %x, %y#0 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %z:2 = train.rms_norm %s, %g epsilon 1.0e-5 : (tensor<2x4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>)
  return %z#0, %s : tensor<2x4xf32>, tensor<2x4xf32>
}

// Tests a norm in 16 bits, whose sum goes on in float32, and is read before the norm; what has 16 bits is the second term.
// CHECK-LABEL: func.func @narrow
// CHECK-NEXT:    %[[Y:.*]], %{{.*}}, %[[X:.*]], %[[R:.*]] = train.rms_norm_of_sum %arg1, %arg2, %arg0
// CHECK-NEXT:    %[[E:.*]] = train.exp %[[X]]
// CHECK-NEXT:    return %[[E]], %[[Y]], %[[R]]
func.func @narrow(%a: tensor<2x4xf32>, %b: tensor<2x4xbf16>, %g: tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2x4xbf16>, tensor<2x4xbf16>) {
  %x:2 = train.fused %a, %b {
  ^bb0(%p: tensor<2x4xf32>, %q: tensor<2x4xbf16>):
    %0 = train.cast %q to f32 : (tensor<2x4xbf16>) -> tensor<2x4xf32>
    %1 = train.add %p, %0 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %2 = train.cast %1 to bf16 : (tensor<2x4xf32>) -> tensor<2x4xbf16>
    train.yield %1, %2 : tensor<2x4xf32>, tensor<2x4xbf16>
  } : (tensor<2x4xf32>, tensor<2x4xbf16>) -> (tensor<2x4xf32>, tensor<2x4xbf16>)
  %e = train.exp %x#0 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %y:2 = train.rms_norm %x#1, %g epsilon 1.0e-5 : (tensor<2x4xbf16>, tensor<4xf32>) -> (tensor<2x4xbf16>, tensor<2xf32>)
  return %e, %y#0, %x#1 : tensor<2x4xf32>, tensor<2x4xbf16>, tensor<2x4xbf16>
}
