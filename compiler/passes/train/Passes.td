//===- Passes.td - what is computed: simplification, differentiation, precision, fusion ===//
#ifndef DS_PASSES_TRAIN_TD
#define DS_PASSES_TRAIN_TD

include "compiler/passes/base/PassBase.td"

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
    Option<"optimizer", "optimizer", "std::string", "\"\"", "adamw, sgd or adagrad">,
    Option<"lr", "lr", "double", "0", "learning rate">,
    Option<"beta1", "beta1", "double", "0", "decay of the first moment (adamw)">,
    Option<"beta2", "beta2", "double", "0", "decay of the second moment (adamw)">,
    Option<"epsilon", "epsilon", "double", "0", "added to the denominator (adamw, adagrad)">,
    Option<"weightDecay", "weight-decay", "double", "0", "weight decay">,
    Option<"decoupled", "decoupled", "bool", "false", "decay the weight, not the gradient (adamw)">,
    Option<"momentum", "momentum", "double", "0", "momentum (sgd)">,
    Option<"nesterov", "nesterov", "bool", "false", "Nesterov momentum (sgd)">,
    Option<"lrDecay", "lr-decay", "double", "0", "the rate of update j is lr / (1 + j * this) (adagrad)">,
    Option<"clip", "clip", "double", "0", "largest global gradient norm; 0: no clipping">,
    Option<"schedule", "schedule", "std::string", "\"constant\"", "constant, WarmupLR, WarmupDecayLR, WarmupCosineLR">,
    Option<"warmupMinLr", "warmup-min-lr", "double", "0", "rate before the first update (WarmupLR, WarmupDecayLR)">,
    Option<"warmupMaxLr", "warmup-max-lr", "double", "0", "rate at the end of the warm-up (WarmupLR, WarmupDecayLR)">,
    Option<"warmupNumSteps", "warmup-num-steps", "int64_t", "0", "updates of the warm-up">,
    Option<"warmupType", "warmup-type", "std::string", "\"\"", "log or linear">,
    Option<"totalNumSteps", "total-num-steps", "int64_t", "0", "updates after which the decay ends">,
    Option<"warmupMinRatio", "warmup-min-ratio", "double", "0", "the first rate, of lr (WarmupCosineLR)">,
    Option<"cosMinRatio", "cos-min-ratio", "double", "0", "the last rate, of lr (WarmupCosineLR)">,
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

def VerifySimpleForm : DsPass<"ds-verify-simple-form"> {
  let summary = "check that a model is ready to be differentiated";
  let description = [{
    There is a `@forward` or, of a model that brings its own algorithm, `@microbatch`, `@update` and `@evaluate`, of one block of
    train ops each, and no `train.gradient` is left. Runs behind the simplifications.
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

#endif // DS_PASSES_TRAIN_TD
