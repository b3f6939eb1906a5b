// RUN: ds-opt %s | ds-opt | FileCheck %s

dist.mesh @mesh ["pipe", "data"] [1, 4]
train.variable parameter @w : tensor<32x40xf32> from #train.fill<0.0>
train.variable parameter @b : tensor<40xf32> from #train.fill<0.0>
dist.bucket @whole on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <replicated> members [@w, @b] at [0, 2048]
train.variable metric @loss : tensor<f32>

// Tests the four collectives as one op, with several parts, and into state.
// CHECK-LABEL: dist.fragment @whole_collectives
dist.fragment @whole_collectives phase forward stage 0 {
  %own = train.read @whole : tensor<1024xf32>
  %all = dist.read_whole @whole : tensor<4096xf32>
  %loss = train.read @loss : tensor<f32>
  // CHECK: %{{.*}}:2 = dist.all_gather %{{.*}}, %{{.*}} on @mesh axis "data" : (tensor<1024xf32>, tensor<1024xf32>) -> (tensor<4096xf32>, tensor<4096xf32>)
  %0:2 = dist.all_gather %own, %own on @mesh axis "data" : (tensor<1024xf32>, tensor<1024xf32>) -> (tensor<4096xf32>, tensor<4096xf32>)
  // CHECK: dist.all_gather %{{.*}} into [@whole] on @mesh axis "data" : (tensor<1024xf32>) -> ()
  dist.all_gather %own into [@whole] on @mesh axis "data" : (tensor<1024xf32>) -> ()
  // CHECK: dist.reduce_scatter %{{.*}} into [@whole] accumulate on @mesh axis "data" : (tensor<4096xf32>) -> ()
  dist.reduce_scatter %all into [@whole] accumulate on @mesh axis "data" : (tensor<4096xf32>) -> ()
  // CHECK: dist.all_reduce %{{.*}} into [@loss] accumulate on @mesh axis "data" : (tensor<f32>) -> ()
  dist.all_reduce %loss into [@loss] accumulate on @mesh axis "data" : (tensor<f32>) -> ()
  // CHECK: dist.broadcast %{{.*}} on @mesh axis "pipe" : (tensor<f32>) -> tensor<f32>
  %1 = dist.broadcast %loss on @mesh axis "pipe" : (tensor<f32>) -> tensor<f32>
}

// Tests dimensions: what is gathered grows there, what is scattered shrinks, what is exchanged stays as large.
// CHECK-LABEL: dist.fragment @dimensions
dist.fragment @dimensions phase forward stage 0 {
  %x = train.constant dense<1.0> : tensor<4x8xf32>
  // CHECK: dist.all_gather %{{.*}} on @mesh axis "data" dim 1 : (tensor<4x8xf32>) -> tensor<4x32xf32>
  %0 = dist.all_gather %x on @mesh axis "data" dim 1 : (tensor<4x8xf32>) -> tensor<4x32xf32>
  // CHECK: dist.reduce_scatter %{{.*}} on @mesh axis "data" dim 1 : (tensor<4x8xf32>) -> tensor<4x2xf32>
  %1 = dist.reduce_scatter %x on @mesh axis "data" dim 1 : (tensor<4x8xf32>) -> tensor<4x2xf32>
  // CHECK: dist.all_to_all %{{.*}} on @mesh axis "data" : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = dist.all_to_all %x on @mesh axis "data" : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: %[[T:.*]] = dist.all_to_all_start %{{.*}} on @mesh axis "data" dim 1 : (tensor<4x8xf32>) -> !dist.token
  %3 = dist.all_to_all_start %x on @mesh axis "data" dim 1 : (tensor<4x8xf32>) -> !dist.token
  // CHECK: dist.all_to_all_done %[[T]] : (!dist.token) -> tensor<4x8xf32>
  %4 = dist.all_to_all_done %3 : (!dist.token) -> tensor<4x8xf32>
}

// Tests the asynchronous forms.
// CHECK-LABEL: dist.fragment @asynchronous
dist.fragment @asynchronous phase forward stage 0 {
  %own = train.read @whole : tensor<1024xf32>
  %loss = train.read @loss : tensor<f32>
  // CHECK: %[[T:.*]] = dist.all_gather_start %{{.*}} on @mesh axis "data" : (tensor<1024xf32>) -> !dist.token
  %0 = dist.all_gather_start %own on @mesh axis "data" : (tensor<1024xf32>) -> !dist.token
  %1 = dist.all_reduce_start %loss into [@loss] accumulate on @mesh axis "data" : (tensor<f32>) -> !dist.token
  %2 = dist.broadcast_start %loss on @mesh axis "data" : (tensor<f32>) -> !dist.token
  // CHECK: dist.all_gather_done %[[T]] : (!dist.token) -> tensor<4096xf32>
  %3 = dist.all_gather_done %0 : (!dist.token) -> tensor<4096xf32>
  %4 = dist.reduce_scatter_start %3 into [@whole] on @mesh axis "data" : (tensor<4096xf32>) -> !dist.token
  // CHECK: dist.all_reduce_done %{{.*}} : (!dist.token) -> ()
  dist.all_reduce_done %1 : (!dist.token) -> ()
  dist.reduce_scatter_done %4 : (!dist.token) -> ()
  %5 = dist.broadcast_done %2 : (!dist.token) -> tensor<f32>
}
