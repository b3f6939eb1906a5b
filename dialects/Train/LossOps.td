//===- LossOps.td - cross entropy, the gradient and its seed --------------===//
#ifndef DS_TRAIN_LOSS_OPS_TD
#define DS_TRAIN_LOSS_OPS_TD

include "dialects/Train/TrainDialect.td"
include "dialects/Train/TrainInterfaces.td"

def Train_Reduction : I32EnumAttr<"Reduction", "how a loss is reduced", [
    I32EnumAttrCase<"Mean", 0, "mean">, I32EnumAttrCase<"Sum", 1, "sum">]> {
  let cppNamespace = "::ds::train";
  let genSpecializedAttr = 0;
}
def Train_ReductionAttr : EnumAttr<Train_Dialect, Train_Reduction, "reduction">;

def Train_CrossEntropyOp : Train_PureOp<"cross_entropy", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "log-softmax and negative log-likelihood of labels";
  let description = [{
    `loss = reduce(lse[n] - logits[n, label[n]])` over the rows whose label is not `ignore_index`; `mean` divides by their
    number. `lse` is the log of the sum of exponentials of each row, kept for the gradient. Of logits in 16 bits both are f32. Cf.
    torch.nn.functional.cross_entropy. A label out of range stops the run with a message. With `classes` only so many columns are
    classes; those behind them, which `ds-pad-vocabulary` made, count nowhere.

    **Constraints**
    - (cross_entropy_c1) `logits` is [N, C], `labels` [N].
    - (cross_entropy_c2) `classes` is 1 to C.
  }];
  let arguments = (ins Train_FloatTensor:$logits, Train_IndexTensor:$labels, I64Attr:$ignore_index,
                       Train_ReductionAttr:$reduction, OptionalAttr<I64Attr>:$classes);
  let results = (outs Train_FloatTensor:$loss, Train_FloatTensor:$lse);
  let assemblyFormat = [{
    $reduction $logits `,` $labels `ignore` $ignore_index (`classes` $classes^)? attr-dict `:` functional-type(operands, results)
  }];
}

def Train_CrossEntropyGradOp : Train_PureOp<"cross_entropy_grad"> {
  let summary = "the gradient of cross_entropy's logits";
  let description = [{
    `dlogits[n, c] = gradient * weight[n] * (exp(logits[n, c] - lse[n]) - (c == label[n]))`, weight 0 for ignored rows, else
    1 or 1 / count. With `classes` the columns behind them are 0.

    **Constraints**
    - (cross_entropy_grad_c1) `logits` is [N, C], `labels` and `lse` [N], `gradient` a scalar.
    - (cross_entropy_grad_c2) `classes` is 1 to C.
  }];
  let arguments = (ins Train_FloatTensor:$logits, Train_IndexTensor:$labels, Train_FloatTensor:$lse,
                       Train_FloatTensor:$gradient, I64Attr:$ignore_index, Train_ReductionAttr:$reduction,
                       OptionalAttr<I64Attr>:$classes);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = [{
    $reduction $logits `,` $labels `,` $lse `,` $gradient `ignore` $ignore_index (`classes` $classes^)? attr-dict
    `:` functional-type(operands, results)
  }];
}

def Train_CrossEntropyWithGradOp : Train_PureOp<"cross_entropy_with_grad"> {
  let summary = "cross_entropy and its gradient, of one reading of the logits";
  let description = [{
    `loss` and `lse` are train.cross_entropy's, `result` is train.cross_entropy_grad's of the same logits and labels.

    **Constraints**
    - (cross_entropy_with_grad_c1) those of train.cross_entropy; `gradient` has the type of the loss.
  }];
  let arguments = (ins Train_FloatTensor:$logits, Train_IndexTensor:$labels, Train_FloatTensor:$gradient,
                       I64Attr:$ignore_index, Train_ReductionAttr:$reduction, OptionalAttr<I64Attr>:$classes);
  let results = (outs Train_FloatTensor:$loss, Train_FloatTensor:$lse, Train_FloatTensor:$result);
  let assemblyFormat = [{
    $reduction $logits `,` $labels `,` $gradient `ignore` $ignore_index (`classes` $classes^)? attr-dict
    `:` functional-type(operands, results)
  }];
}

def Train_LossGradientOp : Train_Op<"loss_gradient", []> {
  let summary = "where the backward pass begins: the gradient of the loss, with every scale in it";
  let description = [{
    Its value is the one place where the backward scales gradients: 1 / (accumulation steps * data-parallel ranks), written by
    `ds-scale-gradients`; 1 as `ds-differentiate` leaves it, and where the update divides by targets (`ds-count-targets`). What stands before it in the function is the forward pass,
    what follows it the backward.
  }];
  let arguments = (ins F64Attr:$scale);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "$scale attr-dict `:` type($result)";
}

def Train_GradientOp : Train_Op<"gradient", [Pure, AttrSizedOperandSegments]> {
  let summary = "the derivatives of a value, as a model file asks for them (ONNX's Gradient)";
  let description = [{
    Result i is the derivative of the sum of `y`'s elements by `xs[i]`, zero where `y` does not depend on it. Derivatives stop at `xs`
    and `zs`, which are taken as independent; `zs` are those that are constant. `ds-expand-gradients` and
    `ds-split-algorithm` replace the op by the backward pass.
    ```mlir
    %dw = train.gradient %loss, %w : (tensor<f32>, tensor<3xf32>) -> tensor<3xf32>
    ```

    **Constraints**
    - (gradient_c1) there is a result for each of `xs`, of its type.
  }];
  let arguments = (ins Train_FloatTensor:$y, Variadic<Train_FloatTensor>:$xs, Variadic<Train_Tensor>:$zs);
  let results = (outs Variadic<Train_FloatTensor>:$results);
  let assemblyFormat = [{
    $y `,` $xs (`fixed` $zs^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif // DS_TRAIN_LOSS_OPS_TD
