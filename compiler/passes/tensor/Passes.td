//===- Passes.td - tensors cut over the ranks of axis tensor ---------------===//
#ifndef DS_PASSES_TENSOR_TD
#define DS_PASSES_TENSOR_TD

include "compiler/passes/base/PassBase.td"

def PartitionTensors : DsPass<"ds-partition-tensors", ["::ds::dist::DistDialect"]> {
  let summary = "give each rank of axis tensor its part of weights and of what is computed with them";
  let description = [{
    ```mlir
    dist.mesh @mesh ["tensor"] [2]
    train.variable parameter @up : tensor<8x16xf32> from #train.fill<0.0>
    train.variable parameter @down : tensor<16x8xf32> from #train.fill<0.0>
    train.variable metric @sum : tensor<4x8xf32>
    func.func @microbatch(%x: tensor<4x8xf32>) {
      %up = train.read @up : tensor<8x16xf32>
      %down = train.read @down : tensor<16x8xf32>
      %h = train.matmul %x, %up : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
      %y = train.matmul %h, %down : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
      train.accumulate %y into @sum : tensor<4x8xf32>
      return
    }
    // becomes
    %up = train.read @up : tensor<8x8xf32>
    %down = train.read @down : tensor<8x8xf32>
    %h = train.matmul %x, %up : ...
    %y = train.matmul %h, %down : ...
    %s = dist.all_reduce %y on @mesh axis "tensor" : ...
    train.accumulate %s into @sum : ...
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
