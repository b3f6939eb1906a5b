// RUN: ds-opt %s | ds-opt | FileCheck %s

// Tests that the factor has one element a row, over one and over two trailing dimensions.
// CHECK-LABEL: func.func @rms_norm_c2
func.func @rms_norm_c2(%x: tensor<2x3x4xf32>, %g: tensor<4xf32>, %h: tensor<3x4xf32>) -> tensor<2x3x4xf32> {
  // CHECK: train.rms_norm %{{.*}}, %{{.*}} epsilon 1.000000e-05 : {{.*}} -> (tensor<2x3x4xf32>, tensor<2x3xf32>)
  %y, %r = train.rms_norm %x, %g epsilon 1.0e-5
      : (tensor<2x3x4xf32>, tensor<4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3xf32>)
  // CHECK: train.rms_norm {{.*}} -> (tensor<2x3x4xf32>, tensor<2xf32>)
  %1:2 = train.rms_norm %x, %h epsilon 1.0e-5
      : (tensor<2x3x4xf32>, tensor<3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2xf32>)
  // CHECK: train.rms_norm_grad {{.*}} -> (tensor<2x3x4xf32>, tensor<4xf32>)
  %2:2 = train.rms_norm_grad %y, %x, %g, %r
      : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<4xf32>, tensor<2x3xf32>) -> (tensor<2x3x4xf32>, tensor<4xf32>)
  // CHECK: train.rms_norm_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %arg0 :
  %3:2 = train.rms_norm_grad %y, %x, %g, %r, %x
      : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<4xf32>, tensor<2x3xf32>, tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<4xf32>)
  return %y : tensor<2x3x4xf32>
}
