// RUN: ds-opt %s | ds-opt | FileCheck %s

train.variable parameter @w : tensor<2xf32> from #train.fill<0.0> {trainable}
train.variable gradient @g : tensor<2xf32>
train.variable gradient @narrow of @w : tensor<2xbf16>
train.variable optimizer @m : tensor<2xf32> from #train.fill<0.0>
train.variable optimizer @v : tensor<2xf32> from #train.fill<0.0>
train.variable parameter @low : tensor<2xbf16> from #train.file<"w.bin", 0, 8, "F32"> {trainable}
train.variable optimizer @"low::moment" of @low : tensor<2xf32> from #train.fill<0.0>
train.variable optimizer @"low::narrow" of @low : tensor<2xbf16> from #train.fill<0.0>

// CHECK-LABEL: func.func @adamw
func.func @adamw(%rate: tensor<f64>, %step: tensor<i64>, %clip: tensor<f64>) {
  // CHECK: train.adamw @w gradient @g moments @m, @v rate %{{.*}} step %{{.*}} clip %{{.*}} {adam_w_mode = true, beta1 = 9.000000e-01 : f64, beta2 = {{.*}} : f64, epsilon = 1.000000e-08 : f64, weight_decay = 1.000000e-02 : f64} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  train.adamw @w gradient @g moments @m, @v rate %rate step %step clip %clip {beta1 = 0.9, beta2 = 0.99, epsilon = 1.0e-8, weight_decay = 0.01, adam_w_mode = true} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  // Sums of gradients may have 16 bits.
  // CHECK: train.adamw @w gradient @narrow
  train.adamw @w gradient @narrow moments @m, @v rate %rate step %step clip %clip {beta1 = 0.9, beta2 = 0.99, epsilon = 1.0e-8, weight_decay = 0.01, adam_w_mode = true} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  // So may parameters; their moments have 16 bits, too, or f32.
  // CHECK: train.adamw @low gradient @narrow moments @"low::moment", @"low::moment"
  train.adamw @low gradient @narrow moments @"low::moment", @"low::moment" rate %rate step %step clip %clip {beta1 = 0.9, beta2 = 0.99, epsilon = 1.0e-8, weight_decay = 0.01, adam_w_mode = true} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  // CHECK: train.adamw @low gradient @narrow moments @"low::narrow", @"low::narrow"
  train.adamw @low gradient @narrow moments @"low::narrow", @"low::narrow" rate %rate step %step clip %clip {beta1 = 0.9, beta2 = 0.99, epsilon = 1.0e-8, weight_decay = 0.01, adam_w_mode = true} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
  return
}
