//===- Passes.td - stages, fragments and the calls of each role ----------===//
#ifndef DS_PASSES_PIPELINE_TD
#define DS_PASSES_PIPELINE_TD

include "compiler/passes/base/PassBase.td"

def DeclareMesh : DsPass<"ds-declare-mesh", ["::ds::dist::DistDialect"]> {
  let summary = "lay the ranks out as a grid with named axes";
  let description = [{
    ```mlir
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
    Writes `dist.pipeline_stage` on ops of `@microbatch` and `@evaluate`. Cuts lie where the fewest bytes cross, between repeated
    blocks where there are such, so that the slowest stage takes as little time as possible by the cost model
    (`compiler/analysis/Cost.h`); no names are looked at. Where a rank has `memory` bytes, stages are cut so that parameters with their
    state, and what the schedule keeps in flight of activations, fit by an estimate, if there is such a cut. Backward ops follow their forward op. What follows from graph inputs and
    constants by a few operations has no stage: each stage that needs it computes it. A parameter that several stages read has a
    gradient in each.

    A stage that the user has written on ops of the forward stays; ops between follow the one before.
  }];
  let options = [Option<"stages", "stages", "int64_t", "1", "stages, those of all ranks">,
                 Option<"partition", "partition", "std::string", "\"\"",
                        "best, or what DeepSpeed balances: uniform, parameters, type:REGEX">,
                 Option<"microbatches", "microbatches", "int64_t", "1", "micro-batches of one rank and step">,
                 Option<"schedule", "schedule", "std::string", "\"\"", "gpipe, 1f1b, interleaved or zb-h1">,
                 Option<"memory", "memory", "int64_t", "0", "bytes of a rank; 0: unknown">,
                 Option<"stateBytes", "state-bytes", "double", "4", "bytes that a rank holds for each byte of a parameter">];
}

def OutlineFragments : DsPass<"ds-outline-fragments", ["::ds::dist::DistDialect"]> {
  let summary = "cut the step into fragments";
  let description = [{
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
    A role for each coordinate of the mesh's axis pipe, with the programs `@step` and `@evaluate`. Feeds run one micro-batch
    ahead of what reads them, receives one task ahead; the tasks' order is that of the schedule
    (`compiler/scheduling/PipelineSchedule.h`).
  }];
  let options = [
    Option<"microbatches", "microbatches", "int64_t", "1", "micro-batches of one rank and step">,
    Option<"schedule", "schedule", "std::string", "\"\"", "gpipe, 1f1b, interleaved or zb-h1">];
}

def JoinStages : DsPass<"ds-join-stages", ["::ds::dist::DistDialect", "::ds::train::TrainDialect"]> {
  let summary = "what pipeline stages tell each other once a step";
  let description = [{
    Sums the gradients of a parameter that several ranks of the pipeline hold: the first of them adds the others' to its own, in
    their order, and sends them the sum, so the copies stay equal. Gathers the partial sums of the gradient norm, each rank's own, so
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
