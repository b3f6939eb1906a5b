// RUN: ds-opt %s | ds-opt | FileCheck %s

// Tests every kind, every source and every flag.
// CHECK: train.variable parameter @h.0.weight : tensor<2x3xf32> from #train.file<"w.bin", 64, 24> {aliases = ["head.weight"], trainable}
train.variable parameter @"h.0.weight" : tensor<2x3xf32> from #train.file<"w.bin", 64, 24> {trainable, aliases = ["head.weight"]}
// CHECK: train.variable parameter @random : tensor<4xf64> from #train.random<"normal", 0.000000e+00 : f64, 2.000000e-02 : f64>
train.variable parameter @random : tensor<4xf64> from #train.random<"normal", 0.0, 0.02>
// CHECK: train.variable parameter @missing : tensor<4xf32> from #train.missing<"not in the file"> {trainable}
train.variable parameter @missing : tensor<4xf32> from #train.missing<"not in the file"> {trainable}
// CHECK: train.variable buffer @mask : tensor<2xi1> from #train.literal<dense<[true, false]> : tensor<2xi1>> {persistent}
train.variable buffer @mask : tensor<2xi1> from #train.literal<dense<[true, false]> : tensor<2xi1>> {persistent}
// CHECK: train.variable optimizer @step : tensor<i64> from #train.fill<0.000000e+00 : f64>
train.variable optimizer @step : tensor<i64> from #train.fill<0.0>
// CHECK: train.variable constant @table : tensor<1xi32> from #train.literal
train.variable constant @table : tensor<1xi32> from #train.literal<dense<7> : tensor<1xi32>>
// CHECK: train.variable gradient @"h.0.weight::gradient" of @h.0.weight : tensor<2x3xf32>
train.variable gradient @"h.0.weight::gradient" of @h.0.weight : tensor<2x3xf32>
// CHECK: train.variable metric @loss : tensor<f32>
train.variable metric @loss : tensor<f32>
// A file range of booleans counts a byte each.
// CHECK: train.variable buffer @bits : tensor<3xi1> from #train.file<"w.bin", 0, 3>
train.variable buffer @bits : tensor<3xi1> from #train.file<"w.bin", 0, 3>
// Elements that the file has in fewer bits are widened; the range is of what is stored.
// CHECK: train.variable parameter @half : tensor<4xf32> from #train.file<"w.bin", 0, 8, "BF16"> {trainable}
train.variable parameter @half : tensor<4xf32> from #train.file<"w.bin", 0, 8, "BF16"> {trainable}
// CHECK: train.variable parameter @single : tensor<4xf64> from #train.file<"w.bin", 0, 16, "F32">
train.variable parameter @single : tensor<4xf64> from #train.file<"w.bin", 0, 16, "F32">
// A piece says of which whole, as its gradient does; the range is the whole's.
// CHECK: train.variable parameter @cut : tensor<2x3xf32> whole [4, 3] from #train.file<"w.bin", 0, 48> {trainable}
train.variable parameter @cut : tensor<2x3xf32> whole [4, 3] from #train.file<"w.bin", 0, 48> {trainable}
// CHECK: train.variable gradient @"cut::gradient" of @cut : tensor<2x3xf32> whole [4, 3]
train.variable gradient @"cut::gradient" of @cut : tensor<2x3xf32> whole [4, 3]
// The reference program reads the whole, ranks their pieces.
// CHECK: train.read @cut : tensor<4x3xf32>
module @reference {
  func.func @microbatch() {
    %0 = train.read @cut : tensor<4x3xf32>
    return
  }
}
// CHECK: train.read @cut : tensor<2x3xf32>
func.func @forward() {
  %0 = train.read @cut : tensor<2x3xf32>
  return
}
