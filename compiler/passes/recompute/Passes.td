//===- Passes.td - what the backward computes again instead of keeping it ===//
#ifndef DS_PASSES_RECOMPUTE_TD
#define DS_PASSES_RECOMPUTE_TD

include "compiler/passes/base/PassBase.td"

def RepeatElementwise : DsPass<"ds-repeat-elementwise"> {
  let summary = "compute cheap values again in the backward pass instead of keeping them";
  let description = [{
    ```mlir
    %0 = train.mul %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %h = train.tanh %0 : (tensor<4xf32>) -> tensor<4xf32>
    %g = train.loss_gradient 1.0 : tensor<f32>
    %1 = train.mul %dy, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    // becomes
    %0 = train.mul %x, %x : ...
    %h = train.tanh %0 : ...
    %g = train.loss_gradient 1.000000e+00 : tensor<f32>
    %2 = train.mul %x, %x : ...                        // %0 again: it need not be kept, as %x is anyway
    %1 = train.mul %dy, %2 : ...
    ```
    A value of the forward pass that the backward reads is repeated there if elementwise ops make it from values that the
    backward has anyway. It is repeated once for elementwise readers and once for all others, so that each fused loop starts from kept
    values. So is an f32 value that elementwise ops make of values of 16 bits with fewer bytes in all, such as tanh of a product: those
    are kept. Fewer bytes live from forward to backward, and fused loops read fewer of them; no bit changes.
    With `once`, one chain is for all readers: with several micro-batches in flight, what two chains keep is harder to
    place (GPT-2 XL in two stages, interleaved: the arena is 10 % larger).
    With `keep-operands`, only elementwise ops read values that are repeated. What a product reads was written for the forward anyway, so
    keeping it moves no bytes, where making it again reads and writes: for devices with memory to spare.
    Must precede `ds-fuse-elementwise`; no CSE may follow.
  }];
  let options = [
    Option<"once", "once", "bool", "false", "one chain for elementwise readers and all others">,
    Option<"keepOperands", "keep-operands", "bool", "false", "what others than elementwise ops read is kept">
  ];
}

def ChooseRecompute : DsPass<"ds-choose-recompute"> {
  let summary = "decide what the backward computes again instead of keeping it";
  let description = [{
    ```mlir
    %0 = train.exp %x : (tensor<4xf32>) -> tensor<4xf32> loc("layer.exp")
    %1 = train.sqrt %0 : (tensor<4xf32>) -> tensor<4xf32> loc("layer.sqrt")
    %g = train.loss_gradient 1.0 : tensor<f32>
    %2 = train.mul %g, %1 : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
    // becomes with rules=exp$=save,sqrt$=recompute
    %0 = train.exp %x : ...
    %1 = train.sqrt %0 {train.recompute} : ...
    %g = train.loss_gradient 1.000000e+00 : tensor<f32>
    %2 = train.mul %g, %1 : ...
    ```
    Writes `train.recompute` on ops of the forward. Layers are found in the graph, not by name: what lies between two positions where
    few bytes cross, a repeated block being one (`compiler/scheduling/PartitionMethod.h`). The last layer, whose backward comes at once, is
    left alone, and what later layers read is kept.

    For every layer, minimum cuts find the choices that keep the fewest bytes for some price of a byte in time
    (`compiler/scheduling/Recompute.h`). A level takes one step of one layer from a choice to the next. Steps come in the order of bytes
    freed for the time of the cost model, earlier layers first. So each level repeats all that the one below repeats, and more.
    With `away` and the module's `dist.links`, what is kept may leave device memory for the host. Then a step comes first in those layers
    from which on most is kept: what layers provide, less what the link moves from their begin to the end of the forward. No step is taken
    that costs more time for a byte than `dearest`.
    `full` repeats whole layers instead, as module-level checkpointing does, and with `checkpoints` that many runs of layers.

    With `rules`, REGEX=save or REGEX=recompute, the first that an op's name matches decides instead.
  }];
  let options = [Option<"level", "level", "int64_t", "0", "how much">,
                 Option<"away", "away", "bool", "false", "what is kept may leave device memory, over the link of the module">,
                 Option<"dearest", "dearest", "double", "0", "seconds of work for a byte, above which no step is taken; 0: all steps are">,
                 Option<"numbered", "numbered", "bool", "false", "train.recompute of an op is the least level that has it, an i64">,
                 Option<"full", "full", "bool", "false", "whole layers">,
                 Option<"checkpoints", "checkpoints", "int64_t", "0", "with full: runs of layers that are repeated together; 0: each by itself">,
                 ListOption<"rules", "rules", "::ds::scheduling::RecomputeRule", "REGEX=save or REGEX=recompute, in order">];
}

def Recompute : DsPass<"ds-recompute"> {
  let summary = "compute again in the backward what is not kept";
  let description = [{
    ```mlir
    %0 = train.exp %x {train.recompute} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = train.sqrt %0 {train.recompute} : (tensor<4xf32>) -> tensor<4xf32>
    %g = train.loss_gradient 1.0 : tensor<f32>
    %2 = train.mul %g, %1 : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
    // becomes
    %0 = train.exp %x : ...
    %1 = train.sqrt %0 : ...
    %g = train.loss_gradient 1.000000e+00 : tensor<f32>
    %3 = train.exp %x {train.recomputed} : ...
    %4 = train.sqrt %3 {train.recomputed} : ...
    %2 = train.mul %g, %4 : ...
    ```
    Where the backward reads a result of an op with `train.recompute`, the op is cloned in front of the first reader, with the
    `train.recompute` ops that it needs. Clones carry `train.recomputed`, and the reference ops of what they repeat; dropout draws the
    same mask. An op that changes state is never repeated. What another pipeline stage computes is kept.
  }];
}

#endif // DS_PASSES_RECOMPUTE_TD
