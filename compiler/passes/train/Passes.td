//===- Passes.td - what is computed: differentiation, precision, optimizers ===//
#ifndef DS_PASSES_TRAIN_TD
#define DS_PASSES_TRAIN_TD

include "compiler/passes/base/PassBase.td"

def AddAdapters : DsPass<"ds-add-adapters"> {
  let summary = "put low-rank adapters beside frozen weights";
  let description = [{
    ```mlir
    train.variable parameter @w : tensor<8x4xf32> from #train.fill<1.0> {trainable}
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x4xf32> {
      %w = train.read @w : tensor<8x4xf32>
      %y = train.matmul %x, %w : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
      return %y : tensor<2x4xf32>
    }
    // becomes with rank=2
    train.variable parameter @w : tensor<8x4xf32> from #train.fill<1.000000e+00 : f64>
    train.variable parameter @w.lora_A : tensor<2x8xf32> from #train.random<"uniform", ..., 0.35355339059327373 : f64> {persistent, trainable}
    train.variable parameter @w.lora_B : tensor<4x2xf32> from #train.fill<0.000000e+00 : f64> {persistent, trainable}
    func.func @forward(%x: tensor<2x8xf32>) -> tensor<2x4xf32> {
      %w = train.read @w : tensor<8x4xf32>
      %0 = train.matmul %x, %w : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
      %a = train.read @w.lora_A : tensor<2x8xf32>
      %b = train.read @w.lora_B : tensor<4x2xf32>
      %1 = train.matmul %x, %a transposed : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x2xf32>
      %2 = train.matmul %1, %b transposed : (tensor<2x2xf32>, tensor<4x2xf32>) -> tensor<2x4xf32>
      %y = train.add %0, %2 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
      return %y : tensor<2x4xf32>
    }
    ```
    Of every product of an activation with a parameter that is a matrix, whichever way it lies; a parameter that several products
    read has one adapter. All others are frozen, but for `trainable`. Without `targets`, a weight that something else reads, or that
    is smaller than the rank, has none; with them it is refused. Cf. LoRA (Hu et al. 2021) and peft.
  }];
  let options = [
    Option<"rank", "rank", "int64_t", "0", "inner dimension of every adapter">,
    Option<"targets", "targets", "std::string", "\"\"", "which weights, a regular expression over names; empty: all that can">,
    ListOption<"trainable", "trainable", "std::string", "regular expressions: parameters that are trained all the same">
  ];
}

def SplitAlgorithm : DsPass<"ds-split-algorithm", ["::mlir::func::FuncDialect", "::ds::train::TrainDialect"]> {
  let summary = "make a training step of a model that brings its own algorithm";
  let description = [{
    ```mlir
    func.func @forward(%x: tensor<3xf32>) -> tensor<f32> attributes {train.algorithm} {
      %w = train.read @w : tensor<3xf32>
      %y = train.mul %w, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      %loss = train.reduce_sum %y over [0] : (tensor<3xf32>) -> tensor<f32>
      %g = train.gradient %loss, %w : (tensor<f32>, tensor<3xf32>) -> tensor<3xf32>
      %new = train.sub %w, %g : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      train.store %new into @w : tensor<3xf32>
      return %loss : tensor<f32>
    }
    // becomes
    func.func @microbatch(%x: tensor<3xf32>) {
      %w = train.read @w : tensor<3xf32>
      ...                                              // the forward pass and, from train.loss_gradient on, the backward
      train.store %g into @"w::derivative" : tensor<3xf32>
      return
    }
    func.func @evaluate(%x: tensor<3xf32>) {           // the forward pass alone
    ...
    func.func @update() {
      %w0 = train.read @w : tensor<3xf32>
      %g0 = train.read @"w::derivative" : tensor<3xf32>
      %new = train.sub %w0, %g0 : ...
      train.store %new into @w : tensor<3xf32>
      ...                                              // the gradient norm
    ```
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
    %y = train.mul %x, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %g = train.gradient %y, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    // becomes
    %y = train.mul %x, %x : ...
    %one = train.constant dense<1.000000e+00> : tensor<3xf32>
    %0 = train.mul %one, %x : ...
    %1 = train.mul %one, %x : ...
    %g = train.add %0, %1 : ...
    ```
    Before any simplification: `%x` may be a value that simplification would leave out.
  }];
}

def LowerPrecision : DsPass<"ds-lower-precision", ["::ds::train::TrainDialect"]> {
  let summary = "compute with 16 bits what docs/precision.md says";
  let description = [{
    ```mlir
    %w = train.read @w : tensor<8x8xf32>
    %y = train.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    // becomes
    %w = train.read @w : tensor<8x8xf32>
    %0 = train.cast %x to bf16 : ...
    %1 = train.cast %w to bf16 : ...
    %y = train.matmul %0, %1 : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
    ```
    Parameters stay f32 and are rounded where they are read. What a parameter reaches is of bf16, or f16, except operands and results
    that the table in `PrecisionTable.cpp` keeps in f32: statistics, sums, scales of norms, losses, and what one elementwise op
    hands on to the next. What no parameter reaches (positions, masks, integers) stays as it is until it meets such a value. A constant that is too large for that, as masks hold the
    lowest f32, becomes the largest.

    Must precede `ds-differentiate`: the gradient of a cast is a cast back, so gradients of parameters are f32 and several of
    one parameter add up in f32. The loss stays f32.
  }];
  let options = [Option<"to", "to", "std::string", "\"bf16\"", "bf16 or f16">];
}

def WidenSums : DsPass<"ds-widen-sums", ["::ds::train::TrainDialect"]> {
  let summary = "sums that are read in f32 are not rounded to 16 bits";
  let description = [{
    ```mlir
    %0 = train.matmul %x transposed, %dy : (tensor<4x8xbf16>, tensor<4x8xbf16>) -> tensor<8x8xbf16>
    %1 = train.cast %0 to f32 : (tensor<8x8xbf16>) -> tensor<8x8xf32>
    train.accumulate %1 into @"w::gradient" : tensor<8x8xf32>
    // becomes
    %1 = train.matmul %x transposed, %dy {wide} : (tensor<4x8xbf16>, tensor<4x8xbf16>) -> tensor<8x8xf32>
    train.accumulate %1 into @"w::gradient" : tensor<8x8xf32>
    ```
    The gradient of a parameter is such a sum. Also through reshapes and transposes; a cast to 16 bits and back is left out. A product that
    is read by anything but sums of gradients stays rounded: activations are wide, and would be written and read at twice the bytes. Must
    follow `ds-differentiate`.
  }];
}

def QuantizeProducts : DsPass<"ds-quantize-products", ["::ds::train::TrainDialect"]> {
  let summary = "compute products of linear layers in 8 bits";
  let description = [{
    ```mlir
    train.variable parameter @w : tensor<32x16xf32> from #train.fill<1.0> {trainable}
    func.func @microbatch(%x: tensor<48x32xbf16>) -> tensor<48x16xbf16> {
      %w = train.read @w : tensor<32x16xf32>
      %0 = train.cast %w to bf16 : (tensor<32x16xf32>) -> tensor<32x16xbf16>
      %y = train.matmul %x, %0 : (tensor<48x32xbf16>, tensor<32x16xbf16>) -> tensor<48x16xbf16>
      return %y : tensor<48x16xbf16>
    }
    // becomes
    func.func @microbatch(%x: tensor<48x32xbf16>) -> tensor<48x16xbf16> {
      %w = train.read @w : tensor<32x16xf32>
      %0 = train.cast %w to bf16 : (tensor<32x16xf32>) -> tensor<32x16xbf16>
      %1, %2 = train.quantize_fp8 %x "e4m3" : (tensor<48x32xbf16>) -> (tensor<48x32xui8>, tensor<f32>)
      %3, %4 = train.quantize_fp8 %0 "e4m3" transposed : (tensor<32x16xbf16>) -> (tensor<16x32xui8>, tensor<f32>)
      %y = train.fp8_matmul %1 by %2 "e4m3", %3 by %4 "e4m3" : (tensor<48x32xui8>, tensor<f32>, tensor<16x32xui8>, tensor<f32>) -> tensor<48x16xbf16>
      return %y : tensor<48x16xbf16>
    }
    ```
    So are the gradients of both factors, where what depends on the gradient of the loss is in E5M2. Only of matrices in bf16 whose dimensions
    are multiples of 16. Products with a table that a gather reads stay as they are, and those that make logits. Must follow
    `ds-differentiate`, `ds-widen-sums` and `ds-fold-transposes`.

    With `blocks` all is in E4M3; parameters have a scale for each 128 x 128 numbers, all else for each 128 along the dimension that is summed.
  }];
  let options = [Option<"blocks", "blocks", "bool", "false", "a scale for each block, not for each tensor">];
}

def Differentiate : DsPass<"ds-differentiate", ["::mlir::func::FuncDialect", "::ds::train::TrainDialect"]> {
  let summary = "add the backward pass, split off evaluation";
  let description = [{
    ```mlir
    func.func @forward(%x: tensor<3xf32>) -> tensor<f32> {
      %w = train.read @w : tensor<3xf32>
      %y = train.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      %loss = train.reduce_sum %y over [0] : (tensor<3xf32>) -> tensor<f32>
      return %loss : tensor<f32>
    }
    // becomes
    func.func @microbatch(%x: tensor<3xf32>) {
      %w = train.read @w : tensor<3xf32>
      %y = train.mul %x, %w : ...
      %loss = train.reduce_sum %y over [0] : ...
      train.accumulate %loss into @loss : tensor<f32>
      %dloss = train.loss_gradient 1.000000e+00 : tensor<f32>
      %0 = train.reshape %dloss to [1] : ...
      %dy = train.broadcast %0 to [3] : ...
      %dw = train.mul %dy, %x : ...
      train.accumulate %dw into @"w::gradient" : tensor<3xf32>
      return
    }
    func.func @evaluate(%v: tensor<3xf32>) {           // the forward pass alone
    ...
    ```
    From `@forward(inputs) -> loss` makes `@microbatch(inputs)`, which adds the loss into the metric `loss` and the
    gradient of every trainable parameter that the loss reaches into its accumulator. It also makes `@evaluate(inputs)`, the
    forward pass with dropout removed, batch norms on their running statistics, and means in place of random numbers.

    1. A forward walk marks the values that depend on a trainable parameter.
    2. A backward walk asks each op for its operands' gradients (DifferentiableOpInterface); several contributions to one
       value are added in the order in which the walk meets them.
    3. The gradient of a parameter is complete before it is accumulated, once per micro-batch: sums have one order,
       ((0 + g_0) + g_1) + ...
  }];
}

def CountTargets : DsPass<"ds-count-targets", ["::mlir::func::FuncDialect", "::ds::train::TrainDialect"]> {
  let summary = "weigh the loss by the targets of the whole batch";
  let description = [{
    ```mlir
    func.func @forward(%logits: tensor<4x8xf32>, %labels: tensor<4xi64>) -> tensor<f32> {
      %loss, %lse = train.cross_entropy mean %logits, %labels ignore -100
          : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>)
      return %loss : tensor<f32>
    }
    // becomes
    train.variable metric @targets : tensor<f64>
    func.func @forward(%logits: tensor<4x8xf32>, %labels: tensor<4xi64>) -> tensor<f32> {
      %loss, %lse = train.cross_entropy sum %logits, %labels ignore -100 : ...
      %ignored = train.constant dense<-100> : tensor<i64>
      %isIgnored = train.equal %labels, %ignored : ...
      %counts = train.not %isIgnored : ...
      %ones = train.cast %counts to f32 : ...
      %sum = train.reduce_sum %ones over [0] : ...
      %targets = train.cast %sum to f64 : ...
      train.accumulate %targets into @targets : tensor<f64>
      return %loss : tensor<f32>
    }
    ```
    The loss must be one mean cross entropy. Sums and counts are added up over micro-batches and ranks; `ds-insert-optimizer` divides gradients,
    their norm and the loss by the metric `targets`.
  }];
}

def ScaleGradients : DsPass<"ds-scale-gradients"> {
  let summary = "put every scale of the gradient into train.loss_gradient";
  let description = [{
    The mean over accumulation steps and data-parallel ranks, once, in one visible op.
    ```mlir
    %g = train.loss_gradient 1.0 : tensor<f32>
    // becomes with microbatches=4
    %g = train.loss_gradient 2.500000e-01 : tensor<f32>
    ```
  }];
  let options = [Option<"microbatches", "microbatches", "int64_t", "1",
                        "micro-batches of one optimizer step over all data-parallel ranks">];
}

def NarrowFrozen : DsPass<"ds-narrow-frozen", ["::ds::train::TrainDialect"]> {
  let summary = "hold what is frozen as its file has it";
  let description = [{
    ```mlir
    train.variable parameter @w : tensor<4x4xf32> from #train.file<"w.safetensors", 0, 32, "BF16">
    func.func @forward() -> tensor<4x4xbf16> {
      %0 = train.read @w : tensor<4x4xf32>
      %1 = train.transpose %0 by [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
      %2 = train.cast %1 to bf16 : (tensor<4x4xf32>) -> tensor<4x4xbf16>
      return %2 : tensor<4x4xbf16>
    }
    // becomes
    train.variable parameter @w : tensor<4x4xbf16> from #train.file<"w.safetensors", 0, 32>
    func.func @forward() -> tensor<4x4xbf16> {
      %0 = train.read @w : tensor<4x4xbf16>
      %1 = train.transpose %0 by [1, 0] : (tensor<4x4xbf16>) -> tensor<4x4xbf16>
      return %1 : tensor<4x4xbf16>
    }
    ```
    Of a parameter that is not trained half the bytes are held, where its file has no more and no use needs all of it in f32.
    Rows that are gathered are widened behind the gather. Results have the same bits.
  }];
}

def NarrowGradients : DsPass<"ds-narrow-gradients", ["::ds::train::TrainDialect"]> {
  let summary = "sum gradients in 16 bits";
  let description = [{
    ```mlir
    train.variable parameter @w : tensor<4xf32> from #train.fill<0.0> {trainable}
    train.variable gradient @"w::gradient" of @w : tensor<4xf32>
    func.func @microbatch(%y: tensor<4xf32>) {
      train.accumulate %y into @"w::gradient" : tensor<4xf32>
      return
    }
    // becomes with type=bf16
    train.variable parameter @w : tensor<4xf32> from #train.fill<0.000000e+00 : f64> {trainable}
    train.variable gradient @"w::gradient" of @w : tensor<4xbf16>
    func.func @microbatch(%y: tensor<4xf32>) {
      %0 = train.cast %y to bf16 : (tensor<4xf32>) -> tensor<4xbf16>
      train.accumulate %0 into @"w::gradient" : tensor<4xbf16>
      return
    }
    ```
    Each addition is of f32 and its result is rounded, so many small contributions to a large sum are lost: the module's
    `train.numerics` becomes `lossy`. Gradients in f64 stay as they are.
  }];
  let options = [Option<"type", "type", "std::string", "\"bf16\"", "bf16 or f16">];
}

def NarrowMasters : DsPass<"ds-narrow-masters", ["::ds::train::TrainDialect"]> {
  let summary = "trained parameters of 16 bits";
  let description = [{
    ```mlir
    train.variable parameter @w : tensor<4xf32> from #train.fill<0.0> {trainable}
    func.func @microbatch() -> (tensor<4xbf16>, tensor<4xf32>) {
      %0 = train.read @w : tensor<4xf32>
      %1 = train.cast %0 to bf16 : (tensor<4xf32>) -> tensor<4xbf16>
      return %1, %0 : tensor<4xbf16>, tensor<4xf32>
    }
    // becomes with type=bf16
    train.variable parameter @w : tensor<4xbf16> from #train.fill<0.000000e+00 : f64> {trainable}
    func.func @microbatch() -> (tensor<4xbf16>, tensor<4xf32>) {
      %0 = train.read @w : tensor<4xbf16>
      %1 = train.cast %0 to f32 : (tensor<4xbf16>) -> tensor<4xf32>
      return %0, %1 : tensor<4xbf16>, tensor<4xf32>
    }
    ```
    Ops that only move elements, such as a gather of rows, move 16 bits. An update rounds what it leaves, so that a step
    which is small beside its parameter is lost: the module's `train.numerics` becomes `lossy`. First values are rounded.
    Parameters in f64, and those that are not trained, stay as they are.
  }];
  let options = [Option<"type", "type", "std::string", "\"bf16\"", "bf16 or f16">];
}

def InsertOptimizer
    : DsPass<"ds-insert-optimizer", ["::mlir::func::FuncDialect", "::ds::train::TrainDialect"]> {
  let summary = "make @update: learning rate, norm, clipping, one optimizer step";
  let description = [{
    ```mlir
    train.variable parameter @w : tensor<3xf32> from #train.fill<0.0> {trainable}
    train.variable gradient @"w::gradient" of @w : tensor<3xf32>
    // becomes with optimizer=sgd lr=0.5 momentum=0.9 clip=1
    ...
    train.variable optimizer @"w::momentum_buffer" of @w : tensor<3xf32> ...
    ...
    func.func @update() {
      ...
      %step = train.read @"optimizer::step" : tensor<i64>
      %rate = train.learning_rate "constant" %step ...
      %g = train.read @"w::gradient" : tensor<3xf32>
      %s = train.block_sum_squares %g : ...
      %norm = train.global_norm %s : ...
      %clip = train.clip_factor %norm max 1.000000e+00 : ...
      train.sgd @w gradient @"w::gradient" momentum @"w::momentum_buffer" rate %rate step %step clip %clip ...
      train.increment @"optimizer::step"
      train.store %norm into @grad_norm : tensor<f64>
      train.store %rate into @lr : tensor<f64>
      return
    }
    ```
    Every variable of kind gradient is normed, clipped and consumed by the optimizer; moments become variables named
    after their parameter. The mean loss, the gradient norm and the learning rate become metrics.
  }];
  let options = [
    Option<"optimizer", "optimizer", "std::string", "\"\"", "adamw, sgd, adagrad, lion or lamb">,
    Option<"lr", "lr", "double", "0", "learning rate">,
    Option<"beta1", "beta1", "double", "0", "decay of the first moment (adamw, lion, lamb)">,
    Option<"beta2", "beta2", "double", "0", "decay of the second moment (adamw, lamb); lion: of its moment">,
    Option<"epsilon", "epsilon", "double", "0", "added to the denominator (adamw, adagrad, lamb)">,
    Option<"weightDecay", "weight-decay", "double", "0", "weight decay">,
    Option<"adamWMode", "adam-w-mode", "bool", "false", "decay the weight, not the gradient (adamw)">,
    Option<"momentum", "momentum", "double", "0", "momentum (sgd)">,
    Option<"nesterov", "nesterov", "bool", "false", "Nesterov momentum (sgd)">,
    Option<"lrDecay", "lr-decay", "double", "0", "the rate of update j is lr / (1 + j * this) (adagrad)">,
    Option<"maxCoeff", "max-coeff", "double", "0", "largest trust ratio (lamb)">,
    Option<"minCoeff", "min-coeff", "double", "0", "least trust ratio (lamb)">,
    Option<"biasCorrection", "bias-correction", "bool", "false", "correct the rate for moments that begin with 0 (lamb)">,
    Option<"parameterGroups", "parameter-groups", "std::string", "\"\"",
           "`{match = \\\"REGEX\\\", weight_decay = 0.0, lr_factor = 0.5}, ...`; the first that matches decides">,
    Option<"clip", "clip", "double", "0", "largest global gradient norm; 0: no clipping">,
    Option<"schedule", "schedule", "std::string", "\"constant\"",
           "constant, WarmupLR, WarmupDecayLR, WarmupCosineLR, LRRangeTest, OneCycle">,
    Option<"scheduleParameters", "schedule-parameters", "std::string", "\"\"",
           "the schedule's, by DeepSpeed's names: `warmup_min_lr = 0.0, warmup_type = \\\"log\\\"`">,
    Option<"momentumParameters", "momentum-parameters", "std::string", "\"\"",
           "those of a momentum that OneCycle cycles; empty: it stays (adamw, lion, lamb)">,
    Option<"narrowMoments", "narrow-moments", "bool", "false", "state of parameters of 16 bits has 16 bits, not f32">,
    Option<"microbatches", "microbatches", "int64_t", "1", "micro-batches whose losses are averaged">];
}

def ScaleLoss : DsPass<"ds-scale-loss", ["::ds::train::TrainDialect"]> {
  let summary = "fp16: scale the loss, skip steps whose gradients overflow, adapt the scale";
  let description = [{
    ```mlir
    func.func @update() {
      %step = train.read @"optimizer::step" : tensor<i64>
      %rate = train.learning_rate "constant" %step {lr = 0.5} : (tensor<i64>) -> tensor<f64>
      %g = train.read @"w::gradient" : tensor<3xf32>
      %s = train.block_sum_squares %g : (tensor<3xf32>) -> tensor<1xf64>
      %norm = train.global_norm %s : (tensor<1xf64>) -> tensor<f64>
      %clip = train.clip_factor %norm max 1.0 : (tensor<f64>) -> tensor<f64>
      train.sgd @w gradient @"w::gradient" rate %rate step %step clip %clip {momentum = 0.0, weight_decay = 0.0, nesterov = false} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
      train.increment @"optimizer::step"
      return
    }
    func.func @microbatch() -> tensor<f32> {
      %d = train.loss_gradient 1.0 : tensor<f32>
      return %d : tensor<f32>
    }
    // becomes with initial=1024 window=0
    train.variable optimizer @"optimizer::loss_scale" : tensor<f32> from #train.fill<1.024000e+03 : f64>
    ...
      %norm = train.global_norm %s : ...
      %scale = train.read @"optimizer::loss_scale" : tensor<f32>
      %wide = train.cast %scale to f64 : ...
      %most = train.constant dense<1.7976931348623157E+308> : tensor<f64>
      %finite = train.less_equal %norm, %most : ...
      %unscaled = train.div %norm, %wide : ...
      %clip = train.clip_factor %unscaled max 1.000000e+00 : ...
      %divided = train.div %clip, %wide : ...
      %zero = train.constant dense<0.000000e+00> : tensor<f64>
      %guarded = train.select %finite, %divided, %zero : ...
      train.sgd @w gradient @"w::gradient" rate %rate step %step clip %guarded ...
      %before = train.read @"optimizer::step" : tensor<i64>
      %counted = train.cast %finite to i64 : ...
      %after = train.add %before, %counted : ...
      train.store %after into @"optimizer::step" : tensor<i64>
    ...
      %seed = train.loss_gradient 1.000000e+00 : tensor<f32>
      %by = train.read @"optimizer::loss_scale" : tensor<f32>
      %scaled = train.mul %seed, %by : ...
    ...
    ```
    A norm of finite numbers is finite in f64, so the norm alone says whether any gradient of any rank is not, and every rank
    knows it. Updates leave all as it is where `clip` is 0. With a window the scale follows DeepSpeed's rule; the
    metric `skipped` is 1 for a step that was skipped, and 2 where the scale cannot get smaller.
  }];
  let options = [
    Option<"initial", "initial", "double", "0", "the first scale">,
    Option<"window", "window", "int64_t", "0", "steps without overflow until the scale is doubled; 0: it stays">,
    Option<"hysteresis", "hysteresis", "int64_t", "1", "overflows until the scale is halved">,
    Option<"consecutive", "consecutive", "bool", "false", "a step without overflow restores the hysteresis">,
    Option<"least", "least", "double", "1", "the least scale">];
}

def DelayUpdates : DsPass<"ds-delay-updates", ["::ds::train::TrainDialect"]> {
  let summary = "each update is of the gradient of the step before";
  let description = [{
    ```mlir
    train.variable parameter @w : tensor<3xf32> from #train.fill<0.0> {trainable}
    train.variable gradient @"w::gradient" of @w : tensor<3xf32>
    train.variable optimizer @"optimizer::step" : tensor<i64> from #train.fill<0.0>
    func.func @update() {
      %step = train.read @"optimizer::step" : tensor<i64>
      %rate = train.learning_rate "constant" %step {lr = 0.5} : (tensor<i64>) -> tensor<f64>
      %one = train.constant dense<1.0> : tensor<f64>
      train.sgd @w gradient @"w::gradient" rate %rate step %step clip %one {momentum = 0.0, weight_decay = 0.0, nesterov = false} : (tensor<f64>, tensor<i64>, tensor<f64>) -> ()
      train.increment @"optimizer::step"
      return
    }
    // becomes
    ...
    train.variable optimizer @"w::pending" of @w : tensor<3xf32> from #train.fill<0.000000e+00 : f64>
    train.variable optimizer @"optimizer::pending_rate" : tensor<f64> from #train.fill<0.000000e+00 : f64>
    train.variable optimizer @"optimizer::pending_step" : tensor<i64> from #train.fill<0.000000e+00 : f64>
    train.variable optimizer @"optimizer::pending_clip" : tensor<f64> from #train.fill<0.000000e+00 : f64>
    func.func @update() {
      %0 = train.read @"optimizer::pending_clip" : tensor<f64>
      %1 = train.read @"optimizer::pending_step" : tensor<i64>
      %2 = train.read @"optimizer::pending_rate" : tensor<f64>
      ...
      train.sgd @w gradient @"w::pending" rate %2 step %1 clip %0 ...
      train.increment @"optimizer::step"
      %g = train.read @"w::gradient" : tensor<3xf32>
      train.store %g into @"w::pending" : tensor<3xf32>
      train.store %rate into @"optimizer::pending_rate" : tensor<f64>
      train.store %step into @"optimizer::pending_step" : tensor<i64>
      train.store %one into @"optimizer::pending_clip" : tensor<f64>
      return
    }
    ```
    An update then needs nothing that its step computes. The first step, whose pending `clip` is 0, updates nothing. This changes
    results: the module gets the attribute `train.stale`. Must follow `ds-insert-optimizer` and `ds-scale-loss`.
  }];
}

def ElideAccumulation : DsPass<"ds-elide-accumulation"> {
  let summary = "store instead of accumulate where a step has one micro-batch";
  let description = [{
    ```mlir
    train.accumulate %g into @"w::gradient" : tensor<3xf32>
    // becomes
    train.store %g into @"w::gradient" : tensor<3xf32>
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
    ```mlir
    func.func @microbatch(%ids: tensor<6xi64>, %table: tensor<5x2xf32>) {
      %rows = train.gather %table, %ids along 0 : (tensor<5x2xf32>, tensor<6xi64>) -> tensor<6x2xf32>
    // becomes
    func.func @microbatch(%ids: tensor<6xi64> {train.limit = 5 : i64}, ...
    ```
    An input that is only moved about and then looked up (`train.gather`) or taken as a label (`train.cross_entropy`) must
    lie in the table: `train.limit = C` on the argument of `@microbatch`, with `train.ignored` for the label that is
    ignored. ds-run refuses other values before a step sees them. `train.equal` asks nothing of an input; where another op
    reads it, nothing is said.
  }];
}

def RecordReference : DsPass<"ds-record-reference"> {
  let summary = "keep the single-device program beside the one to be lowered";
  let description = [{
    ```mlir
    func.func @microbatch(%x: tensor<f32>) {
      %y = train.exp %x : (tensor<f32>) -> tensor<f32>
      return
    }
    // becomes
    func.func @microbatch(%x: tensor<f32>) {
      %y = train.exp %x {train.reference = array<i64: 0>} : ...
      return
    }
    module @reference {
      func.func @microbatch(%v: tensor<f32>) {
        %z = train.exp %v {train.reference = array<i64: 0>} : ...
        return
      }
    }
    ```
    Copies `@microbatch`, `@update` and `@evaluate` into the module `@reference` and numbers their ops, so that every later
    command can name the ops that it implements (attribute `train.reference`). No pass changes the copy.
  }];
}

#endif // DS_PASSES_TRAIN_TD
