// RUN: ds-opt %s | ds-opt | FileCheck %s

dist.mesh @mesh ["pipe", "data", "expert", "tensor"] [1, 4, 1, 2]

// Tests what a value may be of a tensor that ranks share: nothing said, the same everywhere, a piece, a term of a sum, both.
// CHECK: dist.value @plain : tensor<8x4xf32>
// CHECK: dist.value @same : tensor<8x4xf32> sharding <replicated>
// CHECK: dist.value @piece : tensor<8x4xf32> sharding <sharded "data" dim 1>
// CHECK: dist.value @term : tensor<8x4xf32> sharding <partial "tensor">
// CHECK: dist.value @both : tensor<8x4xf32> sharding <sharded "data" dim 0, partial "tensor">
dist.value @plain : tensor<8x4xf32>
dist.value @same : tensor<8x4xf32> sharding <replicated>
dist.value @piece : tensor<8x4xf32> sharding <sharded "data" dim 1>
dist.value @term : tensor<8x4xf32> sharding <partial "tensor">
dist.value @both : tensor<8x4xf32> sharding <sharded "data" dim 0, partial "tensor">

// Tests that a packed weight is cut run by run, and that a variable says how it is cut from its whole.
// CHECK: dist.value @packed : tensor<3x4xf32> sharding <sharded "tensor" dim 0 runs 3>
dist.value @packed : tensor<3x4xf32> sharding <sharded "tensor" dim 0 runs 3>
// CHECK: train.variable parameter @qkv : tensor<3x4xf32> whole [6, 4] {{.*}} {dist.sharding = #dist.sharding<sharded "tensor" dim 0 runs 3>}
train.variable parameter @qkv : tensor<3x4xf32> whole [6, 4] from #train.fill<0.0> {dist.sharding = #dist.sharding<sharded "tensor" dim 0 runs 3>}

// Tests that collectives say what their results are: the sum of terms is whole, or sharded where it is scattered.
// CHECK: dist.all_reduce %{{.*}} on @mesh axis "tensor" sharding <sharded "data" dim 0> : (tensor<8x4xf32>) -> tensor<8x4xf32>
// CHECK: dist.reduce_scatter %{{.*}} on @mesh axis "tensor" dim 1 sharding <sharded "data" dim 0, sharded "tensor" dim 1>
dist.fragment @forward phase forward stage 0 {
  %0 = dist.load @both : tensor<8x4xf32>
  %1 = dist.all_reduce %0 on @mesh axis "tensor" sharding <sharded "data" dim 0> : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = dist.reduce_scatter %0 on @mesh axis "tensor" dim 1 sharding <sharded "data" dim 0, sharded "tensor" dim 1> : (tensor<8x4xf32>) -> tensor<8x2xf32>
}

// Tests that an op of a part says where it begins.
// CHECK: train.slice %{{.*}} {dist.place = {starts = #dist.by_rank<[0, 0], "tensor", [0, 2]>}}
dist.fragment @place phase forward stage 0 {
  %0 = dist.load @both : tensor<8x4xf32>
  %1 = train.slice %0 from [0, 0] size [8, 2] step [1, 1] {dist.place = {starts = #dist.by_rank<[0, 0], "tensor", [0, 2]>}} : (tensor<8x4xf32>) -> tensor<8x2xf32>
}
