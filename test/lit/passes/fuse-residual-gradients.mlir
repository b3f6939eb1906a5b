// RUN: ds-opt %s --ds-fuse-residual-gradients | FileCheck %s

// Tests a sum whose first operand is the residual's, and one whose second is; the second norm's residual is the first norm's result.
// CHECK-LABEL: func.func @block
// CHECK-NEXT:    %[[A:.*]], %{{.*}}, %{{.*}} = train.layer_norm_grad %arg1, %arg2, %arg3, %arg4, %arg4, %arg0 :
// CHECK-NEXT:    %[[E:.*]] = train.exp %[[A]]
// CHECK-NEXT:    %[[B:.*]], %[[G:.*]] = train.rms_norm_grad %[[E]], %arg2, %arg3, %arg4, %[[A]] :
// CHECK-NEXT:    return %[[B]], %[[G]]
func.func @block(%r: tensor<2x3x8xbf16>, %dy: tensor<2x3x8xbf16>, %x: tensor<2x3x8xbf16>, %g: tensor<8xf32>, %s: tensor<2x3xf32>)
    -> (tensor<2x3x8xbf16>, tensor<8xf32>) {
  %0:3 = train.layer_norm_grad %dy, %x, %g, %s, %s : (tensor<2x3x8xbf16>, tensor<2x3x8xbf16>, tensor<8xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<2x3x8xbf16>, tensor<8xf32>, tensor<8xf32>)
  %1 = train.add %r, %0#0 : (tensor<2x3x8xbf16>, tensor<2x3x8xbf16>) -> tensor<2x3x8xbf16>
  %2 = train.exp %1 : (tensor<2x3x8xbf16>) -> tensor<2x3x8xbf16>
  %3:2 = train.rms_norm_grad %2, %x, %g, %s : (tensor<2x3x8xbf16>, tensor<2x3x8xbf16>, tensor<8xf32>, tensor<2x3xf32>) -> (tensor<2x3x8xbf16>, tensor<8xf32>)
  %4 = train.add %3#0, %1 : (tensor<2x3x8xbf16>, tensor<2x3x8xbf16>) -> tensor<2x3x8xbf16>
  return %4, %3#1 : tensor<2x3x8xbf16>, tensor<8xf32>
}

// Tests a sum of two norms' gradients: the second can add the first's.
// CHECK-LABEL: func.func @parallel
// CHECK-NEXT:    %[[A:.*]], %{{.*}} = train.rms_norm_grad %arg0, %arg1, %arg2, %arg3 :
// CHECK-NEXT:    %[[B:.*]], %{{.*}} = train.rms_norm_grad %arg1, %arg1, %arg2, %arg3, %[[A]] :
// CHECK-NEXT:    return %[[B]]
func.func @parallel(%dy: tensor<6x8xf32>, %x: tensor<6x8xf32>, %g: tensor<8xf32>, %s: tensor<6xf32>) -> tensor<6x8xf32> {
  %0:2 = train.rms_norm_grad %dy, %x, %g, %s : (tensor<6x8xf32>, tensor<6x8xf32>, tensor<8xf32>, tensor<6xf32>) -> (tensor<6x8xf32>, tensor<8xf32>)
  %1:2 = train.rms_norm_grad %x, %x, %g, %s : (tensor<6x8xf32>, tensor<6x8xf32>, tensor<8xf32>, tensor<6xf32>) -> (tensor<6x8xf32>, tensor<8xf32>)
  %2 = train.add %0#0, %1#0 : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  return %2 : tensor<6x8xf32>
}
