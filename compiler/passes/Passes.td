//===- Passes.td - every pass: what it does, before and after -------------===//
#ifndef DS_PASSES_TD
#define DS_PASSES_TD

include "mlir/Pass/PassBase.td"

/// `dialects`: those whose ops the pass creates.
class DsPass<string flag, list<string> dialects = []> : Pass<flag, "::mlir::ModuleOp"> {
  let dependentDialects = dialects;
}

//===-- train ----------------------------------------------------------------===//

def FoldTransposes : DsPass<"ds-fold-transposes"> {
  let summary = "let products read a transposed operand in place";
  let description = [{
    ```mlir
    %t = train.transpose %w by [1, 0]          // gone where nothing else reads it
    %y = train.matmul %x, %t                   // train.matmul %x, %w transposed
    ```
    A permutation that does more than swap the last two dimensions is split so that the remaining transpose moves whole
    rows. Must precede `ds-differentiate`, so that gradients are built on the weights as they are stored.
  }];
}

def FuseBias : DsPass<"ds-fuse-bias"> {
  let summary = "let a product add its bias";
  let description = [{
    ```mlir
    %0 = train.matmul %x, %w
    %y = train.add %0, %b                      // train.matmul %x, %w bias %b
    ```
    Only where `%b` is a vector of the product's columns and nothing else reads the product. Must precede
    `ds-differentiate`.
  }];
}

def ConcatPads : DsPass<"ds-concat-pads"> {
  let summary = "a sum of zero-padded parts is their concatenation";
  let description = [{
    ```mlir
    %0 = train.pad %q low [0, 0] high [0, 8] ...
    %1 = train.pad %kv low [0, 4] high [0, 0] ...
    %g = train.add %0, %1                      // train.concat %q, %kv along 1
    ```
    The gradient of a tensor that was split, as attention splits its projection. Only where the parts tile the sum along one
    dimension and nothing else reads them. An element -0 stays -0; the sum would make it 0.
  }];
}

def SplitAlgorithm : DsPass<"ds-split-algorithm", ["::mlir::func::FuncDialect", "::ds::train::TrainDialect"]> {
  let summary = "make a training step of a model that brings its own algorithm";
  let description = [{
    A `@forward` with the attribute `train.algorithm` holds the forward pass, `train.gradient` of its loss, and stores of what
    the algorithm makes of the gradients: ONNX's `training_info`. Becomes `@microbatch`, `@update` and `@evaluate`, as
    `ds-differentiate` and `ds-insert-optimizer` make them of other models.

    What depends on a gradient, and every store, goes to `@update`; what of the forward pass it reads is left in variables of
    kind gradient, or repeated where it depends on no input. Does nothing without the attribute.
  }];
}

def ExpandGradients : DsPass<"ds-expand-gradients", ["::ds::train::TrainDialect"]> {
  let summary = "replace train.gradient by the ops of the backward pass";
  let description = [{
    ```mlir
    %y = train.mul %x, %x
    %g = train.gradient %y, %x                 // %0 = train.mul %one, %x; %1 = train.mul %one, %x; %g = train.add %0, %1
    ```
    Before any simplification: `%x` may be a value that simplification would leave out.
  }];
}

def LowerPrecision : DsPass<"ds-lower-precision", ["::ds::train::TrainDialect"]> {
  let summary = "compute with bf16 what docs/precision.md says";
  let description = [{
    ```mlir
    %w = train.read @w : tensor<8x8xf32>
    %y = train.matmul %x, %w                   // train.matmul of train.cast %x to bf16 and train.cast %w to bf16
    ```
    Parameters stay f32 and are rounded where they are read. What a parameter reaches is of bf16, except operands and results
    that the table in `PrecisionTable.cpp` keeps in f32: statistics, sums, scales of norms, losses, and what one elementwise op
    hands on to the next. What no parameter reaches (positions, masks, integers) stays as it is until it meets such a value. A constant that is too large for bf16, as masks hold the
    lowest f32, becomes the largest.

    Must precede `ds-differentiate`: the gradient of a cast is a cast back, so gradients of parameters are f32 and several of
    one parameter add up in f32. The loss stays f32.
  }];
}

def WidenSums : DsPass<"ds-widen-sums", ["::ds::train::TrainDialect"]> {
  let summary = "sums that are read in f32 are not rounded to bf16";
  let description = [{
    ```mlir
    %0 = train.matmul %x transposed, %dy       // tensor<8x8xbf16>
    %1 = train.cast %0 to f32                  // train.matmul %x transposed, %dy {wide} : tensor<8x8xf32>
    ```
    The gradient of a parameter is such a sum. Also through reshapes and transposes; a cast to bf16 and back is left out. Must
    follow `ds-differentiate`.
  }];
}

def RegroupAttention : DsPass<"ds-regroup-attention", ["::ds::train::TrainDialect"]> {
  let summary = "find attention in what exporters write";
  let description = [{
    ```mlir
    %s = train.matmul %q, %k transposed
    %t = train.mul %s, %scale
    %u = train.add %t, %mask
    %p = train.softmax %u along 3
    %y = train.matmul %p, %v                   // train.attention %q, %k, %v mask %mask scale ...
    ```
    Scales before and after the product, additive and boolean masks, a zero in place of NaN after the softmax and key and
    value heads that are repeated for grouped queries all become part of the op. Left as they are: probabilities that
    something else reads, that a dropout changes, and masks that a trainable parameter reaches. A constant mask that hides
    just the later keys becomes `causal`. Where a row hides every key by minus infinity the op yields zeros, not NaN. Sums
    are taken in another order. Must precede `ds-differentiate`; switch off to compare.
  }];
}

def RegroupRmsNorm : DsPass<"ds-regroup-rms-norm", ["::ds::train::TrainDialect"]> {
  let summary = "find root mean square norms in what exporters write";
  let description = [{
    ```mlir
    %s = train.pow %x, %two
    %m = train.reduce_mean %s over [2]
    %k = train.reshape %m to [4, 64, 1]
    %a = train.add %k, %epsilon
    %r = train.rsqrt %a
    %n = train.mul %x, %r
    %y = train.mul %scale, %n                  // train.rms_norm %x, %scale epsilon ...
    ```
    The square may be a product, the reciprocal root sqrt and reciprocal or a division. Left as they are: norms over other
    dimensions than the last, a scale that is no vector of it, and values on the way that something else reads. Sums are taken
    in another order. Must precede `ds-differentiate`; switch off to compare.
  }];
}

def Differentiate : DsPass<"ds-differentiate", ["::mlir::func::FuncDialect", "::ds::train::TrainDialect"]> {
  let summary = "add the backward pass, split off evaluation";
  let description = [{
    From `@forward(inputs) -> loss` makes `@microbatch(inputs)`, which adds the loss into the metric `loss` and the
    gradient of every trainable parameter that the loss reaches into its accumulator, and `@evaluate(inputs)`, the
    forward pass with dropout removed and batch norms on their running statistics.

    1. A forward walk marks the values that depend on a trainable parameter.
    2. A backward walk asks each op for its operands' gradients (DifferentiableOpInterface); several contributions to one
       value are added in the order in which the walk meets them.
    3. The gradient of a parameter is complete before it is accumulated, once per micro-batch: sums have one order,
       ((0 + g_0) + g_1) + ...
  }];
}

def ScaleGradients : DsPass<"ds-scale-gradients"> {
  let summary = "put every scale of the gradient into train.loss_gradient";
  let description = [{
    The mean over accumulation steps and data-parallel ranks, once, in one visible op.
    ```mlir
    %g = train.loss_gradient 1.0 : tensor<f32>   // 2.5e-01 with microbatches=4
    ```
  }];
  let options = [Option<"microbatches", "microbatches", "int64_t", "1",
                        "micro-batches of one optimizer step over all data-parallel ranks">];
}

def InsertOptimizer
    : DsPass<"ds-insert-optimizer", ["::mlir::func::FuncDialect", "::ds::train::TrainDialect"]> {
  let summary = "make @update: learning rate, norm, clipping, one optimizer step";
  let description = [{
    Every variable of kind gradient is normed, clipped and consumed by the optimizer; moments become variables named
    after their parameter. The mean loss, the gradient norm and the learning rate become metrics.
  }];
  let options = [
    Option<"optimizer", "optimizer", "std::string", "\"adamw\"", "adamw, sgd or adagrad">,
    Option<"lr", "lr", "double", "1e-3", "learning rate">,
    Option<"beta1", "beta1", "double", "0.9", "decay of the first moment (adamw)">,
    Option<"beta2", "beta2", "double", "0.999", "decay of the second moment (adamw)">,
    Option<"epsilon", "epsilon", "double", "1e-8", "added to the denominator (adamw, adagrad)">,
    Option<"weightDecay", "weight-decay", "double", "0", "weight decay">,
    Option<"decoupled", "decoupled", "bool", "true", "decay the weight, not the gradient (adamw)">,
    Option<"momentum", "momentum", "double", "0", "momentum (sgd)">,
    Option<"nesterov", "nesterov", "bool", "false", "Nesterov momentum (sgd)">,
    Option<"lrDecay", "lr-decay", "double", "0", "the rate of update j is lr / (1 + j * this) (adagrad)">,
    Option<"clip", "clip", "double", "0", "largest global gradient norm; 0: no clipping">,
    Option<"schedule", "schedule", "std::string", "\"constant\"", "constant, WarmupLR, WarmupDecayLR, WarmupCosineLR">,
    Option<"scheduleParameters", "schedule-parameters", "std::string", "\"\"",
           "the schedule's parameters as an MLIR dictionary; a command line needs {{warmup_num_steps = 10}}">,
    Option<"microbatches", "microbatches", "int64_t", "1", "micro-batches whose losses are averaged">];
}

def ElideAccumulation : DsPass<"ds-elide-accumulation"> {
  let summary = "store instead of accumulate where a step has one micro-batch";
  let description = [{
    ```mlir
    train.accumulate %g into @"w::gradient"      // train.store %g into @"w::gradient"
    ```
    With one micro-batch and one contribution a step the sum is the contribution; the accumulator then needs no zeroing,
    and the producer writes it in place. Switch off to bisect.
  }];
}

def VerifyTrainForm : DsPass<"ds-verify-train-form"> {
  let summary = "check that a training step is complete";
  let description = [{
    `@microbatch`, `@update` and `@evaluate` exist, take the same inputs, hold train ops only, and every gradient is
    accumulated in one and consumed in the other. Runs before `ds-outline-fragments`.
  }];
}

def InferInputLimits : DsPass<"ds-infer-input-limits"> {
  let summary = "which values an integer input may hold";
  let description = [{
    An input that is only moved about and then looked up (`train.gather`) or taken as a label (`train.cross_entropy`) must
    lie in the table: `train.limit = C` on the argument of `@microbatch`, with `train.ignored` for the label that is
    ignored. ds-run refuses other values before a step sees them. Where another op reads the input, nothing is said.
  }];
}

def RecordReference : DsPass<"ds-record-reference"> {
  let summary = "keep the single-device program beside the one to be lowered";
  let description = [{
    Copies `@microbatch`, `@update` and `@evaluate` into the module `@reference` and numbers their ops, so that every later
    command can name the ops that it implements (attribute `train.reference`). No pass changes the copy.
  }];
}

def RepeatElementwise : DsPass<"ds-repeat-elementwise"> {
  let summary = "compute cheap values again in the backward pass instead of keeping them";
  let description = [{
    ```mlir
    %0 = train.mul %x, %x                      // kept, as %x is
    %g = train.loss_gradient 1.0
    %1 = train.mul %dy, %0                     // reads a second train.mul %x, %x behind %g
    ```
    A value of the forward pass that the backward reads is repeated there if elementwise ops make it from values that the
    backward has anyway. Fewer bytes live from forward to backward, and a fused loop reads fewer of them; no bit changes.
    Must precede `ds-fuse-elementwise`; no CSE may follow.
  }];
}

def FuseElementwise : DsPass<"ds-fuse-elementwise"> {
  let summary = "run chains of elementwise ops as one loop";
  let description = [{
    ```mlir
    %0 = train.mul %x, %x
    %1 = train.tanh %0                           // one train.fused
    ```
    A group has one result shape and is placed at its last op; an op joins the group of an operand when every reader
    outside comes after it, so that order and effects stay as they were. Values read outside the group become results.
    Forward and backward are never mixed. Changes no bit: each op computes what it computed before.
  }];
  let options = [
    Option<"maxOps", "max-ops", "int64_t", "24", "ops of one group">,
    Option<"maxOperands", "max-operands", "int64_t", "12", "operands and results of one group">];
}

//===-- dist -----------------------------------------------------------------===//

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
                 Option<"partition", "partition", "std::string", "\"best\"",
                        "best, or what DeepSpeed balances: uniform, parameters, type:REGEX">,
                 Option<"ranks", "ranks", "int64_t", "1", "ranks along the pipeline">,
                 Option<"microbatches", "microbatches", "int64_t", "1", "micro-batches of one rank and step">,
                 Option<"schedule", "schedule", "std::string", "\"1f1b\"", "gpipe, 1f1b, interleaved or zb-h1">,
                 Option<"memory", "memory", "int64_t", "0", "bytes of a rank; 0: unknown">,
                 Option<"stateBytes", "state-bytes", "double", "4", "bytes that a rank holds for each byte of a parameter">];
}

def ChooseRecompute : DsPass<"ds-choose-recompute"> {
  let summary = "decide what the backward computes again instead of keeping it";
  let description = [{
    Writes `train.recompute` on ops of the forward. Layers are found in the graph, not by name: what lies between two positions where
    few bytes cross, a repeated block being one (`compiler/scheduling/PartitionMethod.h`). The last layer, whose backward comes at once, is
    left alone, and what later layers read is kept.

    For every layer, minimum cuts find the choices that keep the fewest bytes for some price of a byte in time
    (`compiler/scheduling/Recompute.h`). A level takes one step of one layer from a choice to the next; steps come in the order of bytes
    freed for the time of the cost model, earlier layers first, so that each level repeats all that the one below repeats, and more.
    `full` repeats whole layers instead, as module-level checkpointing does, and with `checkpoints` that many runs of layers.

    With `rules`, REGEX=save or REGEX=recompute, the first that an op's name matches decides instead.
  }];
  let options = [Option<"level", "level", "int64_t", "0", "how much">,
                 Option<"full", "full", "bool", "false", "whole layers">,
                 Option<"checkpoints", "checkpoints", "int64_t", "0", "with full: runs of layers that are repeated together; 0: each by itself">,
                 ListOption<"rules", "rules", "std::string", "REGEX=save or REGEX=recompute, in order">];
}

def Recompute : DsPass<"ds-recompute"> {
  let summary = "compute again in the backward what is not kept";
  let description = [{
    Where the backward reads a result of an op with `train.recompute`, the op is cloned in front of the first reader, with the
    `train.recompute` ops that it needs. Clones carry `train.recomputed`, and the reference ops of what they repeat; dropout draws the
    same mask. An op that changes state is never repeated. What another pipeline stage computes is kept.
  }];
}

def OutlineFragments : DsPass<"ds-outline-fragments", ["::ds::dist::DistDialect"]> {
  let summary = "cut the step into fragments";
  let description = [{
    `@microbatch` becomes the fragments `@forward` and `@backward` (from `train.loss_gradient` on), `@update` and
    `@evaluate` one each, and `@feed` writes the graph inputs. What the backward reads of the forward is kept by name;
    reshapes, constants and reads of variables are repeated instead.

    Ops with `dist.pipeline_stage` go to the fragments of their stage, `@"forward::0"`, `@"forward::1"` and so on; stage s runs on
    rank s mod `ranks`. What a stage of another rank needs is sent at the end of the fragment that makes it, and received by
    `@"receive::forward::1"`. There is an update for each rank: of the parameters that its stages read.
  }];
  let options = [Option<"ranks", "ranks", "int64_t", "1", "ranks along the pipeline">,
                 Option<"splitWeights", "split-weights", "bool", "false",
                        "gradients of parameters have fragments of their own, @weight">];
}

def ScheduleCalls : DsPass<"ds-schedule-calls", ["::ds::dist::DistDialect"]> {
  let summary = "list the calls of every role";
  let description = [{
    A role for each rank along the pipeline, with the programs `@step` and `@evaluate`, and the mesh. Feeds run one micro-batch
    ahead of what reads them, receives one task ahead; the tasks' order is that of the schedule
    (`compiler/scheduling/PipelineSchedule.h`).
  }];
  let options = [
    Option<"microbatches", "microbatches", "int64_t", "1", "micro-batches of one rank and step">,
    Option<"dataParallel", "data-parallel", "int64_t", "1", "ranks of the data axis">,
    Option<"ranks", "ranks", "int64_t", "1", "ranks of the pipe axis">,
    Option<"schedule", "schedule", "std::string", "\"1f1b\"", "gpipe, 1f1b, interleaved or zb-h1">];
}

//===-- dist: ZeRO -------------------------------------------------------------===//

def PlanBuckets : DsPass<"ds-plan-buckets"> {
  let summary = "decide which parameters share a bucket, and by which stage it is treated";
  let description = [{
    ```mlir
    train.variable parameter @w : tensor<64x32xf32> {trainable, dist.bucket = "zero.0", dist.stage = 2 : i64}
    ```
    Parameters join the open bucket of their element type and stage in the order in which they are used, until
    `bucket-elements` are reached; a larger one has a bucket of its own. Stage 0 sums gradients, 1 also shares out the
    optimizer's state, 2 the gradients, 3 the parameters; small parameters are treated by stage 2 under stage 3, so that
    they need no gather, unless so many ranks share them that padding would be more than one in 128 of what a rank holds;
    their buckets are their own. Frozen parameters lie in buckets under stage 3 alone. What a parameter says already stays.
  }];
  let options = [
    Option<"stage", "stage", "int64_t", "0", "ZeRO stage, 0 to 3">,
    Option<"bucketElements", "bucket-elements", "int64_t", "500000000", "elements of a bucket">,
    Option<"persistenceThreshold", "persistence-threshold", "int64_t", "100000",
           "stage 3: elements of a parameter that every rank keeps whole">,
    Option<"modelPersistenceThreshold", "model-persistence-threshold", "int64_t", "9223372036854775807",
           "stage 3: elements of all those together">];
}

def LayOutBuckets : DsPass<"ds-lay-out-buckets", ["::ds::dist::DistDialect"]> {
  let summary = "make the buckets that parameters are assigned to";
  let description = [{
    One dist.bucket for the parameters of a name (from stage 1), one for their gradients, one for each kind of optimizer
    state, all with one layout: members from multiples of 1024 elements on, in the order of their declaration. A
    slice is a multiple of 1024 too, or of 512, 256, 128 or 64 where padding would be more than one in 256.
    ```mlir
    dist.bucket @zero.0 on @mesh axis "data" : tensor<4096xf32> slices tensor<2048xf32> held whole members [@w, @b] at [0, 2048]
    dist.bucket @"zero.0::gradient" ... held slice members [@"w::gradient", @"b::gradient"] at [0, 2048]
    ```
  }];
}

def InsertReductions : DsPass<"ds-insert-reductions", ["::ds::dist::DistDialect", "::ds::train::TrainDialect"]> {
  let summary = "sum gradients and losses over the ranks";
  let description = [{
    Gradients of which a rank keeps a slice are reduced in every micro-batch, once the last member's is complete:
    ```mlir
    train.accumulate %dw into @"w::gradient"
    train.accumulate %db into @"b::gradient"
    // becomes
    %flat = dist.pack %dw, %db at [0, 2048]
    dist.reduce_scatter %flat into [@"zero.0::gradient"] accumulate
    ```
    Those that are whole on every rank are reduced at the start of `@update`. A loss is summed by micro-batch and rank.
  }];
}

def ShardOptimizer : DsPass<"ds-shard-optimizer", ["::ds::dist::DistDialect", "::ds::train::TrainDialect"]> {
  let summary = "let each rank update the slices that it owns";
  let description = [{
    ```mlir
    train.adamw @w gradient @"w::gradient" ...
    train.adamw @b gradient @"b::gradient" ...
    // becomes
    train.adamw @zero.0 gradient @"zero.0::gradient" ...
    %own = train.read @zero.0
    dist.all_gather %own into [@zero.0]              // stages 1 and 2
    ```
    One launch a bucket. The gradient norm is made of sums of squares of this rank's blocks, gathered, and has the same
    bits.
  }];
}

def JoinStages : DsPass<"ds-join-stages", ["::ds::dist::DistDialect", "::ds::train::TrainDialect"]> {
  let summary = "what pipeline stages tell each other once a step";
  let description = [{
    Sums the gradients of a parameter that several ranks of the pipeline hold: the first of them adds the others' to its own, in
    their order, and sends them the sum, so the copies stay equal. Gathers the partial sums of the gradient norm, each rank's own, so
    that every rank adds all of them in the order of the parameters. Sends the loss from the last stage to the first.
  }];
}

def InsertParameterGathers
    : DsPass<"ds-insert-parameter-gathers", ["::ds::dist::DistDialect", "::ds::train::TrainDialect"]> {
  let summary = "gather a parameter of which a rank holds a slice before each use";
  let description = [{
    ```mlir
    %w = train.read @w
    // becomes, before every op that reads %w,
    %own = train.read @zero.0
    %whole = dist.all_gather %own
    %w = dist.view %whole at 0
    ```
    Always right and far too many; other passes remove and move them.
  }];
}

defvar DsGatherLimits = [
  Option<"maxLive", "max-live", "int64_t", "1000000000", "elements that may be gathered at once, padding included">,
  Option<"maxReuseDistance", "max-reuse-distance", "int64_t", "1000000000",
         "elements of other parameters that may be used before a gathered one is used again">];

def ElideRedundantGathers : DsPass<"ds-elide-redundant-gathers"> {
  let summary = "gather once what a fragment uses again soon";
  let description = [{
    ```mlir
    %a = dist.all_gather %own                    // stays
    %w = dist.view %a at 0
    %b = dist.all_gather %own                    // goes: %b is %a
    %v = dist.view %b at 1024
    ```
    The nearest pairs first, as long as no more is gathered at once than allowed. Pairs with no use of another bucket
    between them cost nothing and always go. Switch off to bisect.
  }];
  let options = DsGatherLimits;
}

def KeepParametersGathered : DsPass<"ds-keep-parameters-gathered", ["::ds::dist::DistDialect"]> {
  let summary = "keep what was gathered from the forward to the backward, or for a step";
  let description = [{
    What the forward gathers last and the backward needs first is kept as a dist.value; what may stay until the next
    micro-batch needs it is gathered once, in the fragment `@gather`, at the start of the step. The nearest first, within
    the limits; last what the backward has no use for. Then a step gathers a parameter once instead of twice a micro-batch. Switch off to bisect.
  }];
  let options = !listconcat(DsGatherLimits, [
    Option<"microbatches", "microbatches", "int64_t", "1", "micro-batches of one rank and step">]);
}

def CombineCollectives : DsPass<"ds-combine-collectives", ["::ds::dist::DistDialect"]> {
  let summary = "one launch for neighbouring collectives of a kind";
  let description = [{
    ```mlir
    dist.all_reduce %a into [@"zero.0::gradient"]
    dist.all_reduce %b into [@"zero.1::gradient"]
    // becomes
    dist.all_reduce %a, %b into [@"zero.0::gradient", @"zero.1::gradient"]
    ```
    Neighbours have but reads, views and sums of blocks between them, so nothing that could run meanwhile is delayed.
    Switch off to bisect.
  }];
  let options = [Option<"elements", "elements", "int64_t", "500000000", "most elements of the inputs of one launch">];
}

def AdvanceReductions : DsPass<"ds-advance-reductions"> {
  let summary = "reduce whole gradients as soon as they are complete";
  let description = [{
    With one micro-batch a step, a reduction at the head of `@update` moves into `@backward`, behind the last contribution
    to its bucket, so that the rest of the backward runs beside it. Switch off to bisect.
  }];
  let options = [Option<"microbatches", "microbatches", "int64_t", "1", "micro-batches of one rank and step">];
}

def HoistGathers : DsPass<"ds-hoist-gathers"> {
  let summary = "gather ahead of use, within a budget";
  let description = [{
    Moves every gather of a parameter ahead of the uses before it, as long as what is gathered and not yet used stays
    within `prefetch`, and all that is gathered within `max-live`. The order of gathers stays. Means something where
    collectives become asynchronous. Switch off to bisect.
  }];
  let options = [
    Option<"maxLive", "max-live", "int64_t", "1000000000", "elements that may be gathered at once, padding included">,
    Option<"prefetch", "prefetch", "int64_t", "50000000", "elements that may be gathered ahead of their use">];
}

def SplitAsyncCollectives : DsPass<"ds-split-async-collectives", ["::ds::dist::DistDialect"]> {
  let summary = "split collectives into a start and a done";
  let description = [{
    The start stays; the done goes before the first op that uses a result, uses state that the collective writes, or
    writes state that it reads, and at the latest to the end of the fragment. Then collectives have a queue of their own;
    without this pass they run where they stand, on the compute queue.

    Gradients stay in memory until their reduction is done. Where those under way would hold more than `max-held` elements,
    the next one starts after the first of them is done; DeepSpeed's double-buffered buckets have that effect.
  }];
  let options = [Option<"maxHeld", "max-held", "int64_t", "std::numeric_limits<int64_t>::max()",
                        "elements of gradients that reductions under way may hold">];
}

def VerifyDistForm : DsPass<"ds-verify-dist-form"> {
  let summary = "check that every value is kept before it is taken";
  let description = [{
    Follows each program call by call: a fragment may take what an earlier call of the same micro-batch kept or fed. No
    func.func is left outside `@reference`.
  }];
}

//===-- plan -----------------------------------------------------------------===//

def LowerToPlan : DsPass<"ds-lower-to-plan", ["::ds::plan::PlanDialect", "::ds::train::TrainDialect"]> {
  let summary = "fragments to routines of kernels on buffers";
  let description = [{
    Values become buffers, ops become commands with the kernels and workspaces of kernels/KernelSignatures.h, and
    fragments become routines. A reshape is another view of its operand's buffer; what is kept or stored is written in
    place by its producer. Feeds run on the copy-in queue; compute waits for them by event, and they wait for the
    backward two micro-batches before, whose slot they reuse.
  }];
  let options = [
    Option<"device", "device", "::ds::kernels::Device", "::ds::kernels::Device::Cpu", "what kernels run on",
           [{::llvm::cl::values(clEnumValN(::ds::kernels::Device::Cpu, "cpu", ""),
                                clEnumValN(::ds::kernels::Device::Cuda, "cuda", ""))}]>,
    Option<"tf32", "tf32", "bool", "false", "on CUDA, float32 factors of products may be rounded to TF32">,
    Option<"threads", "threads", "int64_t", "1", "compute workers that workspaces are cut for">,
    Option<"workspaceBytesPerThread", "workspace-bytes-per-thread", "int64_t", "4194304", "cap of a workspace, a worker">];
}

def AssignOffsets : DsPass<"ds-assign-offsets"> {
  let summary = "give every buffer its place in the arena";
  let description = [{
    Liveness in queue order on one time axis per program; programs never run at once. Largest first, first fit. Sets
    offsets, lives, and the arenas' sizes and peaks; the result is checked by OffsetProblem::verify. Where micro-batches
    overlap it also sets how many slots values and large scratch have (of scope slot then), each with an offset of its own.
  }];
  let options = [Option<"alignment", "alignment", "int64_t", "64", "bytes; a power of two">];
}

def OrderForMemory : DsPass<"ds-order-for-memory"> {
  let summary = "run commands in an order in which fewer bytes live at once";
  let description = [{
    Within each routine. Commands that touch the same bytes, one of them writing, keep their order, so no bit changes;
    collectives keep theirs among each other, and nothing passes a command that waits for an event or signals one, so what
    runs beside compute begins and ends where it did. Offsets are assigned again; a role keeps its order where its arena
    would not be smaller.
  }];
  let options = [Option<"alignment", "alignment", "int64_t", "64", "bytes; a power of two">];
}

def ChooseCapturedPrograms : DsPass<"ds-choose-captured-programs"> {
  let summary = "say which programs a device may record once and launch again";
  let description = [{
    For devices that record what a run enqueues and launch the record as one (a CUDA graph): `step` becomes `captured`, if every
    arena that it uses is the device's or the host's and no role's run has more than `commands` commands: a record costs the
    device memory of its reserve for each of them, and it is launched whole. Roles decide alike, for all ranks must launch a
    collective in the same way. A mark that a user wrote stays, and is refused where it cannot be. Switch off to bisect.
  }];
  let options = [Option<"commands", "commands", "int64_t", "65536", "most commands of a run that is recorded">];
}

def VerifyPlanForm : DsPass<"ds-verify-plan-form"> {
  let summary = "check that nothing is left to decide";
  let description = [{
    Every buffer has an offset inside its arena and is written before it is read; no op of another dialect is left outside
    `@reference`.
  }];
}

#endif // DS_PASSES_TD
