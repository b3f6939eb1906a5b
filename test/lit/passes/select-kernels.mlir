// RUN: ds-opt %s --ds-select-kernels="threads=2 workspace-bytes-per-thread=65536" --split-input-file | FileCheck %s

// Tests operands in the kernel's order, the shapes that it sees, state by name, and what passes over: references, reads, stores, reshapes.
// CHECK-LABEL: dist.fragment @forward
// CHECK-NEXT:    %[[X:.*]] = dist.load @x : tensor<2x2x4xf32>
// CHECK-NEXT:    %[[S:.*]] = train.read @s : tensor<4xf32>
// CHECK-NEXT:    %[[Y:.*]]:3 = dist.kernel "layer_norm" {epsilon = 1.000000e-05 : f64}(%[[X]], %[[S]], %[[S]]) access [1, 1, 1, 2, 2, 2] as [tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>] {train.reference = array<i64: 7>} : (tensor<2x2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x2x4xf32>, tensor<2x2xf32>, tensor<2x2xf32>)
// CHECK-NEXT:    %[[R:.*]] = train.reshape %[[Y]]#0 to [4, 4]
// CHECK-NEXT:    %[[M:.*]] = dist.kernel "matmul" {bias = 0 : i64, pieces = 2 : i64, trans_a = 1 : i64, trans_b = 0 : i64}(%[[R]], %[[R]]) access [1, 1, 2]
// CHECK-NEXT:    dist.kernel "elementwise" {{.*}}(%[[M]]) access [1, 1, 2] as [tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>] of [@g, unit, @g] : (tensor<4x4xf32>) -> ()
// CHECK-NEXT:    train.store %[[R]] into @h
// CHECK-NEXT:    dist.kernel "increment" {}() access [3] as [tensor<i64>] of [@n] : () -> ()
// CHECK-NEXT:  }
train.variable parameter @s : tensor<4xf32> from #train.fill<1.0> {trainable}
train.variable gradient @g : tensor<4x4xf32>
train.variable gradient @h : tensor<4x4xf32>
train.variable optimizer @n : tensor<i64> from #train.fill<0.0>
dist.value @x : tensor<2x2x4xf32>
dist.fragment @forward phase forward stage 0 {
  %x = dist.load @x : tensor<2x2x4xf32>
  %s = train.read @s : tensor<4xf32>
  %y:3 = train.layer_norm %x, %s, %s epsilon 1.0e-5 {train.reference = array<i64: 7>} : (tensor<2x2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x2x4xf32>, tensor<2x2xf32>, tensor<2x2xf32>)
  %r = train.reshape %y#0 to [4, 4] : (tensor<2x2x4xf32>) -> tensor<4x4xf32>
  %m = train.matmul %r transposed, %r : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  train.accumulate %m into @g : tensor<4x4xf32>
  train.store %r into @h : tensor<4x4xf32>
  train.increment @n
}

// -----

// Tests a workspace, and constants: one that became part of a program goes, the seed of the gradient is one, one that a kernel reads stays.
// CHECK-LABEL: dist.fragment @backward
// CHECK-NEXT:    %[[ROW:.*]] = train.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
// CHECK-NEXT:    %[[SEED:.*]] = train.constant dense<2.500000e-01> : tensor<f32>
// CHECK-NEXT:    train.store %[[SEED]] into @seed
// CHECK-NEXT:    %[[W:.*]] = train.read @w
// CHECK-NEXT:    %[[H:.*]] = dist.kernel "elementwise" {constants = array<f64: -5.000000e-01>,{{.*}}}(%[[W]]) access [1, 2]
// One piece of 64 rows: 2 sums of 2 columns of 4 bytes.
// CHECK-NEXT:    dist.kernel "layer_norm_grad" {}(%[[H]], %[[W]], %[[ROW]], %[[ROW]], %[[ROW]]) access [1, 1, 1, 1, 1, 2, 2, 2] as {{.*}} workspace 16 :
// CHECK-NEXT:  }
train.variable parameter @w : tensor<2x2xf32> from #train.fill<0.0>
train.variable metric @seed : tensor<f32>
dist.fragment @backward phase backward stage 0 {
  %half = train.constant dense<-0.5> : tensor<f32>
  %row = train.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %seed = train.loss_gradient 0.25 : tensor<f32>
  train.store %seed into @seed : tensor<f32>
  %w = train.read @w : tensor<2x2xf32>
  %h = train.mul %w, %half : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  %6:3 = train.layer_norm_grad %h, %w, %row, %row, %row : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>)
}

// -----

// Tests what a CPU's kernels need by the call: the float32 copies of a bfloat16 softmax, 64 bytes each, and what two workers pack of a product
// that suits tiles, up to the cap and 63 bytes to align; a small product packs nothing.
// CHECK-LABEL: dist.fragment @forward
// CHECK:         dist.kernel "softmax" {axis = 1 : i64}(%{{.*}}) access [1, 2] as [tensor<4x4xbf16>, tensor<4x4xbf16>] workspace 128 :
// CHECK:         dist.kernel "matmul" {{.*}} as [tensor<256x64xf32>, tensor<64x256xf32>, tensor<256x256xf32>] workspace 131135 :
// CHECK:         dist.kernel "matmul" {{.*}} as [tensor<16x64xf32>, tensor<64x256xf32>, tensor<16x256xf32>] : (
train.variable parameter @a : tensor<256x64xf32> from #train.fill<0.0>
train.variable parameter @b : tensor<64x256xf32> from #train.fill<0.0>
train.variable parameter @c : tensor<16x64xf32> from #train.fill<0.0>
dist.value @x : tensor<4x4xbf16>
dist.fragment @forward phase forward stage 0 {
  %x = dist.load @x : tensor<4x4xbf16>
  %a = train.read @a : tensor<256x64xf32>
  %b = train.read @b : tensor<64x256xf32>
  %c = train.read @c : tensor<16x64xf32>
  %0 = train.softmax %x along 1 : (tensor<4x4xbf16>) -> tensor<4x4xbf16>
  %1 = train.matmul %a, %b : (tensor<256x64xf32>, tensor<64x256xf32>) -> tensor<256x256xf32>
  %2 = train.matmul %c, %b : (tensor<16x64xf32>, tensor<64x256xf32>) -> tensor<16x256xf32>
}
