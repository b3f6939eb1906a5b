// RUN: ds-opt %s --ds-lower-precision=to=f16 | FileCheck %s
// RUN: not ds-opt %s --ds-lower-precision=to=f8 2>&1 | FileCheck %s --check-prefix=OTHER

// Tests float16: the same casts as of bf16, and a constant that is too large for it is its largest number.
// OTHER: to "f8" is none of bf16, f16
// CHECK-LABEL: func.func @forward
train.variable parameter @w : tensor<4x4xf32> from #train.fill<0.0> {trainable}
func.func @forward(%x: tensor<4x4xf32>) -> tensor<f32> {
  %w = train.read @w : tensor<4x4xf32>
  // CHECK: train.constant dense<-6.550400e+04> : tensor<4x4xf32>
  %mask = train.constant dense<-3.40282347E+38> : tensor<4x4xf32>
  // CHECK: %[[Y:.*]] = train.matmul {{.*}} -> tensor<4x4xf16>
  %y = train.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %z = train.add %y, %mask : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: train.reduce_sum {{.*}} : (tensor<4x4xf16>) -> tensor<f32>
  %loss = train.reduce_sum %z over [0, 1] : (tensor<4x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
