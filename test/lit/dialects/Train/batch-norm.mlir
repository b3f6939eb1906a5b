// RUN: ds-opt %s | ds-opt | FileCheck %s

// CHECK: train.variable buffer @running_mean
train.variable buffer @running_mean : tensor<3xf32> from #train.fill<0.0> {persistent}

// Tests that statistics have one element a channel, and that an average of them is a buffer.
// CHECK-LABEL: func.func @batch_norm_c1
func.func @batch_norm_c1(%x: tensor<2x3x4x5xf32>, %g: tensor<3xf32>) -> tensor<2x3x4x5xf32> {
  // CHECK: train.batch_norm %{{.*}}, %{{.*}}, %{{.*}} epsilon 1.000000e-05
  // CHECK-SAME: -> (tensor<2x3x4x5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  %y, %mean, %variance, %rstd = train.batch_norm %x, %g, %g epsilon 1.0e-5
      : (tensor<2x3x4x5xf32>, tensor<3xf32>, tensor<3xf32>)
      -> (tensor<2x3x4x5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  // CHECK: train.update_average %{{.*}} into @running_mean momentum 9.000000e-01 correction 1.000000e+00 : tensor<3xf32>
  train.update_average %mean into @running_mean momentum 0.9 correction 1.0 : tensor<3xf32>
  // CHECK: train.batch_norm_grad
  %0:3 = train.batch_norm_grad %y, %x, %g, %mean, %rstd
      : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
      -> (tensor<2x3x4x5xf32>, tensor<3xf32>, tensor<3xf32>)
  return %y : tensor<2x3x4x5xf32>
}
