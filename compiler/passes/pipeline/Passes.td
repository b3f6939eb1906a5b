//===- Passes.td - stages, fragments and the calls of each role ----------===//
#ifndef DS_PASSES_PIPELINE_TD
#define DS_PASSES_PIPELINE_TD

include "compiler/passes/base/PassBase.td"

def DeclareMesh : DsPass<"ds-declare-mesh", ["::ds::dist::DistDialect"]> {
  let summary = "lay the ranks out as a grid with named axes";
  let description = [{
    ```mlir
    module {
    }
    // becomes with pipe=2 data=4
    dist.mesh @mesh ["pipe", "data", "expert", "tensor"] [2, 4, 1, 1]
    ```
    Comes first: all that follows asks the mesh for an axis by its name. A mesh that a user has written stays, if it has the
    same sizes.
  }];
  let options = [Option<"pipe", "pipe", "int64_t", "1", "ranks along the pipeline">,
                 Option<"data", "data", "int64_t", "1", "ranks that share out micro-batches">,
                 Option<"expert", "expert", "int64_t", "1", "ranks that share out experts">,
                 Option<"tensor", "tensor", "int64_t", "1", "ranks that share out a tensor">];
}

def CutPipelineStages : DsPass<"ds-cut-pipeline-stages"> {
  let summary = "decide which pipeline stage runs each op";
  let description = [{
    ```mlir
    func.func @microbatch(%x: tensor<64x16xf32>) {
      %u = train.read @u : tensor<16x16xf32>
      %0 = train.matmul %x, %u : (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32>
      %v = train.read @v : tensor<16x16xf32>
      %1 = train.matmul %0, %v : (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32>
      %loss = train.reduce_sum %1 over [0, 1] : (tensor<64x16xf32>) -> tensor<f32>
      train.accumulate %loss into @loss : tensor<f32>
    // becomes with stages=2 partition=best
    func.func @microbatch(%x: tensor<64x16xf32>) {
      %u = train.read @u : tensor<16x16xf32>
      %0 = train.matmul %x, %u {dist.pipeline_stage = 0 : i64} : ...
      %v = train.read @v : tensor<16x16xf32>
      %1 = train.matmul %0, %v {dist.pipeline_stage = 1 : i64} : ...
      %loss = train.reduce_sum %1 over [0, 1] {dist.pipeline_stage = 1 : i64} : ...
      train.accumulate %loss into @loss {dist.pipeline_stage = 1 : i64} : tensor<f32>
    ```
    Writes `dist.pipeline_stage` on ops of `@microbatch` and `@evaluate`. Cuts lie where the fewest bytes cross, between repeated
    blocks where there are such, so that the slowest stage takes as little time as possible by the cost model
    (`compiler/analysis/Cost.h`); no names are looked at. Where a rank has `memory` bytes, stages are cut so that parameters with their
    state, and what the schedule keeps in flight of activations, fit by an estimate, if there is such a cut. Backward ops follow their forward op. What follows from graph inputs and
    constants by a few operations has no stage: each stage that needs it computes it. A parameter that several stages read has a
    gradient in each. With the schedule accumulate-by-layer and one stage, the repeated blocks of the model are the stages, all on one
    rank.

    A stage that the user has written on ops of the forward stays; ops between follow the one before.
  }];
  let options = [Option<"stages", "stages", "int64_t", "1", "stages, those of all ranks">,
                 Option<"partition", "partition", "std::string", "\"\"",
                        "best, or what DeepSpeed balances: uniform, parameters, type:REGEX">,
                 Option<"microbatches", "microbatches", "int64_t", "1", "micro-batches of one rank and step">,
                 Option<"schedule", "schedule", "std::string", "\"\"", "gpipe, 1f1b, interleaved, zb-h1 or accumulate-by-layer">,
                 Option<"memory", "memory", "int64_t", "0", "bytes of a rank; 0: unknown">,
                 Option<"stateBytes", "state-bytes", "double", "4", "bytes that a rank holds for each byte of a parameter">];
}

def OutlineFragments : DsPass<"ds-outline-fragments", ["::ds::dist::DistDialect"]> {
  let summary = "cut the step into fragments";
  let description = [{
    ```mlir
    func.func @microbatch(%x: tensor<4xf32> {train.input = "x"}) {
      %0 = train.exp %x : (tensor<4xf32>) -> tensor<4xf32>
      %1 = train.reduce_sum %0 over [0] : (tensor<4xf32>) -> tensor<f32>
      train.store %1 into @loss : tensor<f32>
      %2 = train.loss_gradient 1.0 : tensor<f32>
      %3 = train.mul %0, %2 : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
      train.store %3 into @"w::gradient" : tensor<4xf32>
      return
    }
    // becomes
    dist.value @x : tensor<4xf32> input "x"
    dist.fragment @feed phase feed stage 0 {
      dist.feed @x
    }
    dist.value @value : tensor<4xf32>
    dist.fragment @forward phase forward stage 0 {
      %x = dist.load @x : tensor<4xf32>
      %0 = train.exp %x : ...
      dist.store %0 as @value : tensor<4xf32>
      %1 = train.reduce_sum %0 over [0] : ...
      train.store %1 into @loss : tensor<f32>
    }
    dist.fragment @backward phase backward stage 0 {
      %2 = train.loss_gradient 1.000000e+00 : tensor<f32>
      %kept = dist.load @value : tensor<4xf32>
      %3 = train.mul %kept, %2 : ...
      train.store %3 into @"w::gradient" : tensor<4xf32>
    }
    ```
    `@microbatch` becomes the fragments `@forward` and `@backward` (from `train.loss_gradient` on), `@update` and
    `@evaluate` one each, and `@feed` writes the graph inputs. What the backward reads of the forward is stored by name;
    reshapes, constants and reads of variables are repeated instead.

    Ops with `dist.pipeline_stage` go to the fragments of their stage, `@"forward::0"`, `@"forward::1"` and so on; stage s runs at
    coordinate s mod P of the P of the mesh's axis pipe. What a stage of another rank needs is sent at the end of the fragment that makes it, and received by
    `@"receive::forward::1"`. There is an update for each rank: of the parameters that its stages read.
  }];
  let options = [Option<"splitWeights", "split-weights", "bool", "false",
                        "gradients of parameters have fragments of their own, @weight">];
}

def ScheduleCalls : DsPass<"ds-schedule-calls", ["::ds::dist::DistDialect"]> {
  let summary = "list the calls of every role";
  let description = [{
    ```mlir
    dist.fragment @feed phase feed stage 0 {
    }
    dist.fragment @forward phase forward stage 0 {
    }
    dist.fragment @backward phase backward stage 0 {
    }
    dist.fragment @update phase update pipe 0 {
    }
    // becomes with microbatches=2 schedule=1f1b
    ...
    dist.role @main ranks [0, 0] {
      dist.program @step {
        dist.call @feed microbatch 0
        dist.call @feed microbatch 1
        dist.call @forward microbatch 0
        dist.call @backward microbatch 0
        dist.call @forward microbatch 1
        dist.call @backward microbatch 1
        dist.call @update microbatch 1
      }
    ```
    A role for each coordinate of the mesh's axis pipe, with the programs `@step` and `@evaluate`. Feeds run one micro-batch
    ahead of what reads them, receives one task ahead; the tasks' order is that of the schedule: with accumulate-by-layer one
    rank calls each fragment for all micro-batches before the next
    (`compiler/scheduling/PipelineSchedule.h`).
  }];
  let options = [
    Option<"microbatches", "microbatches", "int64_t", "1", "micro-batches of one rank and step">,
    Option<"schedule", "schedule", "std::string", "\"\"", "gpipe, 1f1b, interleaved, zb-h1 or accumulate-by-layer">];
}

def JoinStages : DsPass<"ds-join-stages", ["::ds::dist::DistDialect", "::ds::train::TrainDialect"]> {
  let summary = "what pipeline stages tell each other once a step";
  let description = [{
    ```mlir
    // forward::0 and forward::1 both read @t, backward::0 and backward::1 add to its gradient
    dist.fragment @"update::0" phase update pipe 0 {
    }
    dist.fragment @"update::1" phase update pipe 1 {
    }
    // becomes
    dist.fragment @"update::0" phase update pipe 0 {
      %theirs = dist.load @"t::gradient::from::1" : tensor<4xf32>
      train.accumulate %theirs into @"t::gradient" : tensor<4xf32>
      %sum = train.read @"t::gradient" : tensor<4xf32>
      dist.send %sum on @"tied::0-1" : tensor<4xf32>
    }
    ...
    dist.fragment @"update::1" phase update pipe 1 {
      %own = train.read @"t::gradient" : tensor<4xf32>
      dist.send %own on @"tied::1-0" : tensor<4xf32>
      %total = dist.load @"t::gradient::sum::1" : tensor<4xf32>
      train.store %total into @"t::gradient" : tensor<4xf32>
      %loss = train.read @loss : tensor<f32>
      dist.send %loss on @"step::loss" : tensor<f32>
    }
    ```
    Sums the gradients of a parameter that several ranks of the pipeline hold. The first of those that add to it adds the others' to its
    own, in their order. It sends every holder the sum, so the copies stay equal. Gathers the partial sums of the gradient norm, each rank's own, so
    that every rank adds all of them in the order of the parameters. Sends the loss from the last stage to the first.
  }];
}

def VerifyDistForm : DsPass<"ds-verify-dist-form"> {
  let summary = "check that every value is stored before it is loaded";
  let description = [{
    Follows each program call by call: a fragment may load what an earlier call of the same micro-batch stored, fed or received. No
    func.func is left outside `@reference`.
  }];
}

#endif // DS_PASSES_PIPELINE_TD
