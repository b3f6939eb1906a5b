//===- Passes.td - tensors cut over the ranks of axis tensor ---------------===//
#ifndef DS_PASSES_TENSOR_TD
#define DS_PASSES_TENSOR_TD

include "compiler/passes/base/PassBase.td"

def PartitionTensors : DsPass<"ds-partition-tensors", ["::ds::dist::DistDialect"]> {
  let summary = "give each rank of axis tensor its part of weights and of what is computed with them";
  let description = [{
    Over two ranks of axis tensor:
    ```mlir
    train.variable parameter @up : tensor<64x256xf32> ...
    train.variable parameter @down : tensor<256x64xf32> ...
    %h = train.matmul %x, %w_up : (tensor<8x64xf32>, tensor<64x256xf32>) -> tensor<8x256xf32>
    %y = train.matmul %h, %w_down : (tensor<8x256xf32>, tensor<256x64xf32>) -> tensor<8x64xf32>
    // becomes
    train.variable parameter @up : tensor<64x128xf32> ... {whole = array<i64: 64, 256>, dist.sharding = #dist.sharding<sharded "tensor" dim 1>}
    train.variable parameter @down : tensor<128x64xf32> ... {whole = array<i64: 256, 64>, dist.sharding = #dist.sharding<sharded "tensor" dim 0>}
    %h = train.matmul %x, %w_up : (tensor<8x64xf32>, tensor<64x128xf32>) -> tensor<8x128xf32>
    %t = train.matmul %h, %w_down : (tensor<8x128xf32>, tensor<128x64xf32>) -> tensor<8x64xf32>
    %y = dist.all_reduce %t on @mesh axis "tensor" : (tensor<8x64xf32>) -> tensor<8x64xf32>
    ```
    A sweep over the ops of a function, forward and backward alike, says what a rank has of each value: all of it, a part of one dimension, or a
    term of a sum. What cutting a call does stands in the kernel's row (`kernels/Factors.h`). Of several ways to run an op on what its
    operands are, the one with the fewest bytes on the wire is taken. Terms that are added stay terms, so that three products of one input
    have one sum.

    Which parameters are cut, and where, is a search by that sweep. Parameters whose names differ in numbers alone are cut alike. It begins
    with nothing cut, and once more with every matrix cut along what its product keeps. One kind after another is changed as long as a rank
    then does, holds and sends less. Out of it come the layouts of Megatron-LM (arXiv 1909.08053) for attention and for the two products of a
    feed-forward block.
  }];
}

#endif // DS_PASSES_TENSOR_TD
