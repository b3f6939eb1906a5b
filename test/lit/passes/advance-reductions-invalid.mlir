// RUN: ds-opt %s --ds-advance-reductions | FileCheck %s
// No input is wrong for this pass; a sum without a contribution in @backward stays where it is.

// CHECK-LABEL: dist.fragment @update
// CHECK:         dist.all_reduce
dist.mesh @mesh ["data"] [4]
train.variable gradient @"p::gradient" : tensor<1024xf32>
train.variable gradient @"q::gradient" : tensor<1000xf32>
dist.bucket @gp on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <replicated> members [@"p::gradient"] at [0]
dist.bucket @gq on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <replicated> members [@"q::gradient"] at [0]
dist.fragment @backward phase backward stage 0 {
}
dist.fragment @update phase update pipe 0 {
  %g0 = dist.read_whole @gp : tensor<4096xf32>
  dist.all_reduce %g0 into [@gp] on @mesh axis "data" : (tensor<4096xf32>) -> ()
}
