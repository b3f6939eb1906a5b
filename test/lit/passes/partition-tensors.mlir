// RUN: ds-opt %s --ds-partition-tensors | FileCheck %s

// Tests that the first product of a block is cut by columns and the second by rows, with one sum forward and one backward, and that
// the norm is of all ranks' parts.
dist.mesh @mesh ["pipe", "data", "expert", "tensor"] [1, 1, 1, 2]
// CHECK: train.variable parameter @up : tensor<4x4xf32> whole [4, 8] from {{.*}} {dist.sharding = #dist.sharding<sharded "tensor" dim 1>, trainable}
// CHECK: train.variable parameter @bias : tensor<4xf32> whole [8] from {{.*}} {dist.sharding = #dist.sharding<sharded "tensor" dim 0>, trainable}
// CHECK: train.variable parameter @down : tensor<4x4xf32> whole [8, 4] from {{.*}} {dist.sharding = #dist.sharding<sharded "tensor" dim 0>, trainable}
// CHECK: train.variable gradient @"up::gradient" of @up : tensor<4x4xf32> whole [4, 8]
train.variable parameter @up : tensor<4x8xf32> from #train.fill<0.0> {trainable}
train.variable parameter @bias : tensor<8xf32> from #train.fill<0.0> {trainable}
train.variable parameter @down : tensor<8x4xf32> from #train.fill<0.0> {trainable}
train.variable gradient @"up::gradient" of @up : tensor<4x8xf32>
train.variable gradient @"bias::gradient" of @bias : tensor<8xf32>
train.variable gradient @"down::gradient" of @down : tensor<8x4xf32>
train.variable metric @seen : tensor<2x4xf32>

// CHECK-LABEL: func.func @microbatch
func.func @microbatch(%x: tensor<2x4xf32>, %dy: tensor<2x4xf32>) {
  // CHECK: %[[H:.*]] = train.matmul %arg0, %{{.*}} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  // CHECK: %[[B:.*]] = train.add %[[H]], %{{.*}} : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  // CHECK: %[[A:.*]] = train.relu %[[B]]
  // CHECK: %[[T:.*]] = train.matmul %[[A]], %{{.*}} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  // CHECK: %[[Y:.*]] = dist.all_reduce %[[T]] on @mesh axis "tensor" : (tensor<2x4xf32>) -> tensor<2x4xf32>
  // CHECK: %[[S:.*]] = train.add %[[Y]], %arg0
  // CHECK: train.accumulate %[[S]] into @seen
  %up = train.read @up : tensor<4x8xf32>
  %bias = train.read @bias : tensor<8xf32>
  %down = train.read @down : tensor<8x4xf32>
  %0 = train.matmul %x, %up : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %1 = train.add %0, %bias : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
  %h = train.relu %1 : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %y = train.matmul %h, %down : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %s = train.add %y, %x : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  train.accumulate %s into @seen : tensor<2x4xf32>
  // CHECK: train.matmul %{{.*}} transposed, %arg1 : {{.*}} -> tensor<4x4xf32>
  // CHECK: %[[DH:.*]] = train.matmul %arg1, %{{.*}} transposed : {{.*}} -> tensor<2x4xf32>
  // CHECK: %[[DX:.*]] = train.matmul %[[DH]], %{{.*}} transposed : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  // CHECK: dist.all_reduce %[[DX]] on @mesh axis "tensor"
  %ddown = train.matmul %h transposed, %dy : (tensor<2x8xf32>, tensor<2x4xf32>) -> tensor<8x4xf32>
  train.accumulate %ddown into @"down::gradient" : tensor<8x4xf32>
  %dh = train.matmul %dy, %down transposed : (tensor<2x4xf32>, tensor<8x4xf32>) -> tensor<2x8xf32>
  %db = train.reduce_sum %dh over [0] : (tensor<2x8xf32>) -> tensor<8xf32>
  train.accumulate %db into @"bias::gradient" : tensor<8xf32>
  %dup = train.matmul %x transposed, %dh : (tensor<2x4xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
  train.accumulate %dup into @"up::gradient" : tensor<4x8xf32>
  %dx = train.matmul %dh, %up transposed : (tensor<2x8xf32>, tensor<4x8xf32>) -> tensor<2x4xf32>
  train.accumulate %dx into @seen : tensor<2x4xf32>
  return
}

// CHECK-LABEL: func.func @update
func.func @update() -> tensor<f64> {
  // CHECK: %[[OWN:.*]] = train.block_sum_squares %{{.*}} : (tensor<4x4xf32>) -> tensor<1xf64>
  // CHECK: %[[ALL:.*]] = dist.all_gather %[[OWN]] on @mesh axis "tensor" : (tensor<1xf64>) -> tensor<2xf64>
  // CHECK: train.global_norm %[[ALL]] : (tensor<2xf64>) -> tensor<f64>
  %g = train.read @"up::gradient" : tensor<4x8xf32>
  %squares = train.block_sum_squares %g : (tensor<4x8xf32>) -> tensor<1xf64>
  %norm = train.global_norm %squares : (tensor<1xf64>) -> tensor<f64>
  return %norm : tensor<f64>
}
