//===- NormOps.td - softmax, norms, random numbers ------------------------===//
#ifndef DS_TRAIN_NORM_OPS_TD
#define DS_TRAIN_NORM_OPS_TD

include "dialects/Train/TrainDialect.td"
include "dialects/Train/TrainInterfaces.td"

class Train_SoftmaxLikeOp<string mnemonic, string what>
    : Train_PureOp<mnemonic, [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = what;
  let description = [{
    **Constraints**
    - (softmax_c1) `axis` is a dimension of `input`.
  }];
  let arguments = (ins Train_FloatTensor:$input, I64Attr:$axis);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "$input `along` $axis attr-dict `:` functional-type(operands, results)";
}
def Train_SoftmaxOp : Train_SoftmaxLikeOp<"softmax", "exp(x) / sum exp(x), computed from x - max(x)">;
def Train_LogSoftmaxOp : Train_SoftmaxLikeOp<"log_softmax", "x - log sum exp(x)">;

class Train_SoftmaxGradBase<string mnemonic, string what> : Train_PureOp<mnemonic> {
  let summary = what;
  let description = [{
    **Constraints**
    - (softmax_grad_c1) `output` and `gradient` have one type, and `axis` is a dimension of it.
  }];
  let arguments = (ins Train_FloatTensor:$output, Train_FloatTensor:$gradient, I64Attr:$axis);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "$output `,` $gradient `along` $axis attr-dict `:` functional-type(operands, results)";
}
def Train_SoftmaxGradOp : Train_SoftmaxGradBase<"softmax_grad", "y * (dy - sum(y * dy))">;
def Train_LogSoftmaxGradOp : Train_SoftmaxGradBase<"log_softmax_grad", "dy - exp(y) * sum(dy)">;

def Train_LayerNormOp : Train_PureOp<"layer_norm", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "normalise rows, scale, shift";
  let description = [{
    `y = (x - mean) * rstd * scale + shift` over the last dimensions, as many as `scale` has; also yields mean and
    rstd = 1 / sqrt(variance + epsilon) of each row. Ba et al. 2016; torch.nn.functional.layer_norm.

    **Constraints**
    - (layer_norm_c1) `scale` and `shift` have one type, whose shape ends `input`'s; it is of `input`'s element type, f32 for 16 bits.
    - (layer_norm_c2) mean and rstd have `input`'s leading dimensions and `scale`'s element type.
  }];
  let arguments = (ins Train_FloatTensor:$input, Train_FloatTensor:$scale, Train_FloatTensor:$shift, F64Attr:$epsilon);
  let results = (outs Train_FloatTensor:$result, Train_FloatTensor:$mean, Train_FloatTensor:$rstd);
  let assemblyFormat = "$input `,` $scale `,` $shift `epsilon` $epsilon attr-dict `:` functional-type(operands, results)";
}

def Train_LayerNormOfSumOp : Train_PureOp<"layer_norm_of_sum"> {
  let summary = "a sum and layer_norm of it";
  let description = [{
    `sum = input + residual`, `rounded` to 16 bits where `input` has them, and train.layer_norm's results of that.

    **Constraints**
    - (layer_norm_of_sum_c1) those of train.layer_norm; `residual` has `input`'s shape, and is f32 for 16 bits.
  }];
  let arguments = (ins Train_FloatTensor:$input, Train_FloatTensor:$scale, Train_FloatTensor:$shift,
                       Train_FloatTensor:$residual, F64Attr:$epsilon);
  let results = (outs Train_FloatTensor:$result, Train_FloatTensor:$mean, Train_FloatTensor:$rstd,
                      Train_FloatTensor:$sum, Optional<Train_FloatTensor>:$rounded);
  let assemblyFormat = "operands `epsilon` $epsilon attr-dict `:` functional-type(operands, results)";
}

def Train_LayerNormGradOp : Train_PureOp<"layer_norm_grad"> {
  let summary = "gradients of layer_norm";
  let description = [{
    Yields the gradients of input, scale and shift; that of input is rounded, and `residual` is added to it, if there is one.

    **Constraints**
    - (layer_norm_grad_c1) `gradient` has `input`'s type, `scale` the shape that ends it, mean and rstd its leading ones.
    - (layer_norm_grad_c2) `residual` has `input`'s type.
  }];
  let arguments = (ins Train_FloatTensor:$gradient, Train_FloatTensor:$input, Train_FloatTensor:$scale,
                       Train_FloatTensor:$mean, Train_FloatTensor:$rstd, Optional<Train_FloatTensor>:$residual);
  let results = (outs Train_FloatTensor:$input_gradient, Train_FloatTensor:$scale_gradient,
                      Train_FloatTensor:$shift_gradient);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Train_RmsNormOp : Train_PureOp<"rms_norm", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "scale rows to a mean square of one";
  let description = [{
    `y = x * rrms * scale` over the last dimensions, as many as `scale` has; also yields rrms = 1 / sqrt(mean(x^2) + epsilon)
    of each row. Zhang and Sennrich 2019; torch.nn.functional.rms_norm.

    **Constraints**
    - (rms_norm_c1) `scale`'s shape ends `input`'s; it is of `input`'s element type, f32 for 16 bits.
    - (rms_norm_c2) rrms has `input`'s leading dimensions and `scale`'s element type.
  }];
  let arguments = (ins Train_FloatTensor:$input, Train_FloatTensor:$scale, F64Attr:$epsilon);
  let results = (outs Train_FloatTensor:$result, Train_FloatTensor:$rrms);
  let assemblyFormat = "$input `,` $scale `epsilon` $epsilon attr-dict `:` functional-type(operands, results)";
}

def Train_RmsNormOfSumOp : Train_PureOp<"rms_norm_of_sum"> {
  let summary = "a sum and rms_norm of it";
  let description = [{
    `sum = input + residual`, `rounded` to 16 bits where `input` has them, and train.rms_norm's results of that.

    **Constraints**
    - (rms_norm_of_sum_c1) those of train.rms_norm; `residual` has `input`'s shape, and is f32 for 16 bits.
  }];
  let arguments = (ins Train_FloatTensor:$input, Train_FloatTensor:$scale, Train_FloatTensor:$residual,
                       F64Attr:$epsilon);
  let results = (outs Train_FloatTensor:$result, Train_FloatTensor:$rrms, Train_FloatTensor:$sum, Optional<Train_FloatTensor>:$rounded);
  let assemblyFormat = "operands `epsilon` $epsilon attr-dict `:` functional-type(operands, results)";
}

def Train_RmsNormGradOp : Train_PureOp<"rms_norm_grad"> {
  let summary = "gradients of rms_norm";
  let description = [{
    Yields the gradients of input and scale; that of input is rounded, and `residual` is added to it, if there is one.

    **Constraints**
    - (rms_norm_grad_c1) `gradient` has `input`'s type, `scale` the shape that ends it, rrms its leading one.
    - (rms_norm_grad_c2) `residual` has `input`'s type.
  }];
  let arguments = (ins Train_FloatTensor:$gradient, Train_FloatTensor:$input, Train_FloatTensor:$scale,
                       Train_FloatTensor:$rrms, Optional<Train_FloatTensor>:$residual);
  let results = (outs Train_FloatTensor:$input_gradient, Train_FloatTensor:$scale_gradient);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Train_BatchNormOp : Train_PureOp<"batch_norm", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "normalise channels by the batch's statistics, scale, shift";
  let description = [{
    `y = (x - mean) * rstd * scale + shift`, each for one channel, dimension 1; mean and (biased) variance are taken over all
    other dimensions, rstd = 1 / sqrt(variance + epsilon). Ioffe and Szegedy 2015; torch.nn.functional.batch_norm in training.
    Instance and group normalization are this op on a view with one sample and samples x channels (or groups) channels.

    Pure, and so free to be computed again: running statistics are a `train.update_average` of `mean` and `variance`. Where
    those exist, `@evaluate` normalises by them; where not, by the batch's.

    **Constraints**
    - (batch_norm_c1) `input` is [N, C, ...]; `scale` and `shift` are [C] of its element type, f32 for 16 bits, and so are mean,
      variance and rstd.
  }];
  let arguments = (ins Train_FloatTensor:$input, Train_FloatTensor:$scale, Train_FloatTensor:$shift, F64Attr:$epsilon);
  let results = (outs Train_FloatTensor:$result, Train_FloatTensor:$mean, Train_FloatTensor:$variance,
                      Train_FloatTensor:$rstd);
  let assemblyFormat = "$input `,` $scale `,` $shift `epsilon` $epsilon attr-dict `:` functional-type(operands, results)";
}

def Train_BatchNormGradOp : Train_PureOp<"batch_norm_grad"> {
  let summary = "gradients of batch_norm";
  let description = [{
    Yields the gradients of input, scale and shift.

    **Constraints**
    - (batch_norm_grad_c1) `gradient` has `input`'s type [N, C, ...]; scale, mean and rstd are [C].
  }];
  let arguments = (ins Train_FloatTensor:$gradient, Train_FloatTensor:$input, Train_FloatTensor:$scale,
                       Train_FloatTensor:$mean, Train_FloatTensor:$rstd);
  let results = (outs Train_FloatTensor:$input_gradient, Train_FloatTensor:$scale_gradient,
                      Train_FloatTensor:$shift_gradient);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Train_DropoutOp : Train_PureOp<"dropout", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "zero a random share, scale the rest";
  let description = [{
    `y = x * keep / (1 - ratio)`. The mask is a function of (seed, step, global micro-batch, `op_id`, element index), drawn
    by Philox 4x32-10: drawing it again gives the same mask, so the gradient is the same op on the result's gradient and
    nothing is kept in between.

    **Constraints**
    - (dropout_c1) 0 <= ratio < 1.
    - (dropout_c2) `op_id` >= 0; two draws that must differ have different ones.
  }];
  let arguments = (ins Train_FloatTensor:$input, F64Attr:$ratio, I64Attr:$op_id);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "$input `ratio` $ratio `id` $op_id attr-dict `:` functional-type(operands, results)";
}

def Train_UniformOp : Train_PureOp<"uniform"> {
  let summary = "random numbers, uniform in [0, 1)";
  let description = [{
    torch.rand: each element is a multiple of 2^-24 (f32) or 2^-32 (f64) at least 0 and below 1. It is a function of (seed, step,
    global micro-batch, `op_id`, element index), drawn by Philox 4x32-10 as a `train.dropout`'s mask: drawing it again gives the
    same numbers on any rank, so the op is free to be computed again. It has no operands, and no gradient flows into it.

    ```mlir
    %u = train.uniform [4, 1] of f32 id 0 : tensor<4x1xf32>
    ```

    What is drawn otherwise is computed from it: a Bernoulli number is `u < p`, a normal one follows Box and Muller (1958). In
    `@evaluate` means stand in its place.

    **Constraints**
    - (uniform_c1) `shape` has no negative dimension, and no more elements than an i64 counts.
    - (uniform_c2) `element_type` is f32 or f64.
    - (uniform_c3) `op_id` >= 0; two draws that must differ have different ones.
  }];
  let arguments = (ins DenseI64ArrayAttr:$shape, TypeAttr:$element_type, I64Attr:$op_id);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "$shape `of` $element_type `id` $op_id attr-dict `:` type($result)";
}

#endif // DS_TRAIN_NORM_OPS_TD
