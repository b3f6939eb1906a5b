//===- OptimizerOps.td - one optimizer step -------------------------------===//
#ifndef DS_TRAIN_OPTIMIZER_OPS_TD
#define DS_TRAIN_OPTIMIZER_OPS_TD

include "dialects/Train/StateOps.td"

/// Updates the variable `parameter` in place from the variable `gradient`; leaves it and its state as they are where
/// `clip` is 0.
class Train_UpdateOp<string mnemonic, dag state, dag hyper>
    : Train_StateOp<mnemonic, [MemoryEffects<[MemRead<Train_Variables>, MemWrite<Train_Variables>]>]> {
  let arguments = !con((ins FlatSymbolRefAttr:$parameter, FlatSymbolRefAttr:$gradient), state,
                       (ins Train_F64Scalar:$learning_rate, Train_I64Scalar:$step, Train_F64Scalar:$clip), hyper);
}

def Train_AdamWOp : Train_UpdateOp<"adamw",
    (ins FlatSymbolRefAttr:$first_moment, FlatSymbolRefAttr:$second_moment),
    (ins Optional<Train_F64Scalar>:$momentum, F64Attr:$beta1, F64Attr:$beta2, F64Attr:$epsilon, F64Attr:$weight_decay,
         BoolAttr:$adam_w_mode)> {
  let summary = "Adam with decoupled weight decay";
  let description = [{
    Loshchilov and Hutter 2019; torch.optim.AdamW (`adam_w_mode`) or torch.optim.Adam. The gradient is multiplied by `clip`
    first, and 0 is no update; `step` counts the updates done before this one. `beta1` of this update is `momentum` where there is one.

    **Constraints**
    - (adamw_c1) parameter and both moments name variables of one float type; gradient one of that type, or of bf16 or f16. Moments of a parameter of 16 bits may be f32.
  }];
  let assemblyFormat = [{
    $parameter `gradient` $gradient `moments` $first_moment `,` $second_moment `rate` $learning_rate `step` $step `clip` $clip
    (`momentum` $momentum^)? attr-dict `:` functional-type(operands, results)
  }];
}

def Train_SgdOp : Train_UpdateOp<"sgd",
    (ins OptionalAttr<FlatSymbolRefAttr>:$momentum_buffer),
    (ins F64Attr:$momentum, F64Attr:$weight_decay, BoolAttr:$nesterov)> {
  let summary = "stochastic gradient descent with momentum";
  let description = [{
    torch.optim.SGD with dampening 0. The gradient is multiplied by `clip` first, and 0 is no update.

    **Constraints**
    - (sgd_c1) parameter and momentum buffer name variables of one float type; gradient one of that type, or of bf16 or f16.
    - (sgd_c2) there is a momentum buffer exactly if momentum is not 0.
  }];
  let assemblyFormat = [{
    $parameter `gradient` $gradient (`momentum` $momentum_buffer^)? `rate` $learning_rate `step` $step `clip` $clip attr-dict
    `:` functional-type(operands, results)
  }];
}

def Train_AdagradOp : Train_UpdateOp<"adagrad",
    (ins FlatSymbolRefAttr:$square_sum),
    (ins F64Attr:$epsilon, F64Attr:$weight_decay, F64Attr:$lr_decay)> {
  let summary = "a rate of its own for every element";
  let description = [{
    Duchi, Hazan and Singer 2011; torch.optim.Adagrad. The gradient is multiplied by `clip` first, and 0 is no update; `step` counts the updates
    done before this one.

    **Constraints**
    - (adagrad_c1) parameter and the sum of squares name variables of one float type; gradient one of that type, or of bf16 or f16.
  }];
  let assemblyFormat = [{
    $parameter `gradient` $gradient `sum` $square_sum `rate` $learning_rate `step` $step `clip` $clip attr-dict
    `:` functional-type(operands, results)
  }];
}

def Train_LionOp : Train_UpdateOp<"lion",
    (ins FlatSymbolRefAttr:$first_moment),
    (ins Optional<Train_F64Scalar>:$momentum, F64Attr:$beta1, F64Attr:$beta2, F64Attr:$weight_decay)> {
  let summary = "steps of one size along the sign of a moment";
  let description = [{
    Chen et al. 2023; DeepSpeed's FusedLion. The gradient is multiplied by `clip` first. `beta1` of this update is
    `momentum` where there is one.

    **Constraints**
    - (lion_c1) parameter and moment name variables of one float type; gradient one of that type, or of bf16 or f16.
  }];
  let assemblyFormat = [{
    $parameter `gradient` $gradient `moment` $first_moment `rate` $learning_rate `step` $step `clip` $clip
    (`momentum` $momentum^)? attr-dict `:` functional-type(operands, results)
  }];
}

def Train_LambOp : Train_UpdateOp<"lamb",
    (ins FlatSymbolRefAttr:$first_moment, FlatSymbolRefAttr:$second_moment),
    (ins Optional<Train_F64Scalar>:$momentum, F64Attr:$beta1, F64Attr:$beta2, F64Attr:$epsilon, F64Attr:$weight_decay,
         F64Attr:$max_coeff, F64Attr:$min_coeff, BoolAttr:$bias_correction)> {
  let summary = "Adam's direction, as far as the parameter is long";
  let description = [{
    You et al. 2020; DeepSpeed's FusedLamb. The gradient is multiplied by `clip` first. The step along Adam's direction with
    weight decay is multiplied by the trust ratio: the parameter's norm over the direction's, from `min_coeff` to
    `max_coeff`, and 1 where either is 0. Both norms are of all elements, so a parameter is updated whole. `bias_correction`
    corrects the rate, not the moments. `beta1` of this update is `momentum` where there is one.

    **Constraints**
    - (lamb_c1) parameter and both moments name variables of one float type; gradient one of that type, or of bf16 or f16.
    - (lamb_c2) `min_coeff` is at least 0 and at most `max_coeff`.
  }];
  let hasVerifier = 1;
  let assemblyFormat = [{
    $parameter `gradient` $gradient `moments` $first_moment `,` $second_moment `rate` $learning_rate `step` $step `clip` $clip
    (`momentum` $momentum^)? attr-dict `:` functional-type(operands, results)
  }];
}

def Train_LearningRateOp : Train_PureOp<"learning_rate"> {
  let summary = "the schedule's learning rate for this update";
  let description = [{
    `step` is the number of updates done before this one. `schedule` is `constant`, `WarmupLR`, `WarmupDecayLR`,
    `WarmupCosineLR`, `LRRangeTest` or `OneCycle` with DeepSpeed's parameters; `parameters` holds numbers and, for
    `warmup_type`, text.

    **Constraints**
    - (learning_rate_c1) `schedule` is one of the six.
  }];
  let arguments = (ins Train_I64Scalar:$step, StrAttr:$schedule, DictionaryAttr:$parameters);
  let results = (outs Train_F64Scalar:$result);
  let assemblyFormat = "$schedule $step $parameters attr-dict `:` functional-type(operands, results)";
}

def Train_CycledMomentumOp : Train_PureOp<"cycled_momentum"> {
  let summary = "the momentum of schedule OneCycle for this update";
  let description = [{
    Takes the place of an optimizer's first beta. `step` is the number of updates done before this one; `parameters` are
    DeepSpeed's of OneCycle.
  }];
  let arguments = (ins Train_I64Scalar:$step, DictionaryAttr:$parameters);
  let results = (outs Train_F64Scalar:$result);
  let assemblyFormat = "$step $parameters attr-dict `:` functional-type(operands, results)";
}

def Train_BlockSumSquaresOp : Train_PureOp<"block_sum_squares"> {
  let summary = "sums of squares of blocks of up to 1024 elements, in f64";
  let description = [{
    Blocks start at the parameter's first element. A sum is a binary tree over sums of 64, so that four sums of 256 give the
    bits of one of 1024, and a norm has the same bits however it is sharded.

    **Constraints**
    - (block_sum_squares_c1) `block` is a power of two from 64 to 1024.
  }];
  let arguments = (ins Train_FloatTensor:$input, DefaultValuedAttr<I64Attr, "1024">:$block);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "$input (`by` $block^)? attr-dict `:` functional-type(operands, results)";
}

def Train_GlobalNormOp : Train_PureOp<"global_norm"> {
  let summary = "the square root of all partial sums, added in operand order";
  let description = [{
    `blocks` says how many elements a partial sum of each operand is of; without, of 1024. Smaller ones are first added to sums
    of 1024, as train.block_sum_squares would have.

    **Constraints**
    - (global_norm_c1) every operand is an f64 vector.
    - (global_norm_c2) `blocks` is empty, or has a power of two from 64 to 1024 for every operand, whose elements make whole
      sums of 1024.
  }];
  let arguments = (ins Variadic<Train_FloatTensor>:$partials, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$blocks);
  let results = (outs Train_F64Scalar:$result);
  let assemblyFormat = "$partials (`by` $blocks^)? attr-dict `:` functional-type(operands, results)";
}

def Train_ClipFactorOp : Train_PureOp<"clip_factor"> {
  let summary = "1 / max(1, (norm + 1e-6) / max_norm)";
  let description = [{
    DeepSpeed's gradient_clipping and torch.nn.utils.clip_grad_norm_.

    **Constraints**
    - (clip_factor_c1) max_norm > 0.
  }];
  let arguments = (ins Train_F64Scalar:$norm, F64Attr:$max_norm);
  let results = (outs Train_F64Scalar:$result);
  let assemblyFormat = "$norm `max` $max_norm attr-dict `:` functional-type(operands, results)";
}

def Train_IncrementOp
    : Train_StateOp<"increment", [MemoryEffects<[MemRead<Train_Variables>, MemWrite<Train_Variables>]>]> {
  let summary = "add one to a counter";
  let description = [{
    **Constraints**
    - (increment_c1) `variable` names a scalar i64 variable.
  }];
  let arguments = (ins FlatSymbolRefAttr:$variable);
  let assemblyFormat = "$variable attr-dict";
}

#endif // DS_TRAIN_OPTIMIZER_OPS_TD
