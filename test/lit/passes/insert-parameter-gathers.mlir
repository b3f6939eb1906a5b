// RUN: ds-opt %s --ds-insert-parameter-gathers --split-input-file | FileCheck %s

// Tests a gather right before every op that reads a shared parameter, through reshapes too.
// CHECK-LABEL: dist.fragment @forward
// CHECK-NEXT:    train.constant
// CHECK-NEXT:    %[[OWN:.*]] = train.read @z : tensor<1024xf32>
// CHECK-NEXT:    %[[ALL:.*]] = dist.all_gather %[[OWN]] on @mesh axis "data" : (tensor<1024xf32>) -> tensor<4096xf32>
// CHECK-NEXT:    %[[A:.*]] = dist.view %[[ALL]] at 0 : tensor<4096xf32> -> tensor<32x32xf32>
// CHECK-NEXT:    train.matmul %{{.*}}, %[[A]]
// CHECK-NEXT:    train.read @z
// CHECK-NEXT:    %[[ALL:.*]] = dist.all_gather
// CHECK-NEXT:    %[[B:.*]] = dist.view %[[ALL]] at 1024 : tensor<4096xf32> -> tensor<1x1000xf32>
// CHECK-NEXT:    train.exp %[[B]]
// CHECK-NEXT:    train.read @z
// CHECK-NEXT:    dist.all_gather
// CHECK-NEXT:    dist.view
// CHECK-NEXT:    train.matmul
dist.mesh @mesh ["pipe", "data", "tensor"] [1, 4, 1]
train.variable parameter @a : tensor<32x32xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"a::gradient" of @a : tensor<32x32xf32>
train.variable parameter @b : tensor<1000xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"b::gradient" of @b : tensor<1000xf32>
dist.bucket @z on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@a, @b] at [0, 1024]
dist.fragment @forward phase forward stage 0 {
  %x = train.constant dense<1.0> : tensor<8x32xf32>
  %a = train.read @a : tensor<32x32xf32>
  %b = train.read @b : tensor<1000xf32>
  %row = train.reshape %b to [1, 1000] : (tensor<1000xf32>) -> tensor<1x1000xf32>
  %0 = train.matmul %x, %a : (tensor<8x32xf32>, tensor<32x32xf32>) -> tensor<8x32xf32>
  %1 = train.exp %row : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
  %2 = train.matmul %0, %a : (tensor<8x32xf32>, tensor<32x32xf32>) -> tensor<8x32xf32>
}

// -----

// Tests that what every rank holds whole is read where it lies.
// CHECK-LABEL: dist.fragment @forward
// CHECK:         train.read @a
// CHECK-NOT:     dist.all_gather
dist.mesh @mesh ["pipe", "data", "tensor"] [1, 4, 1]
train.variable parameter @a : tensor<32x32xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"a::gradient" of @a : tensor<32x32xf32>
train.variable parameter @b : tensor<1000xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"b::gradient" of @b : tensor<1000xf32>
dist.bucket @z on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <replicated> members [@a, @b] at [0, 1024]
dist.fragment @forward phase forward stage 0 {
  %x = train.constant dense<1.0> : tensor<8x32xf32>
  %a = train.read @a : tensor<32x32xf32>
  %b = train.read @b : tensor<1000xf32>
  %row = train.reshape %b to [1, 1000] : (tensor<1000xf32>) -> tensor<1x1000xf32>
  %0 = train.matmul %x, %a : (tensor<8x32xf32>, tensor<32x32xf32>) -> tensor<8x32xf32>
  %1 = train.exp %row : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
  %2 = train.matmul %0, %a : (tensor<8x32xf32>, tensor<32x32xf32>) -> tensor<8x32xf32>
}
