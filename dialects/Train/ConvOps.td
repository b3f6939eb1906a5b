//===- ConvOps.td - convolution and pooling -------------------------------===//
#ifndef DS_TRAIN_CONV_OPS_TD
#define DS_TRAIN_CONV_OPS_TD

include "dialects/Train/TrainDialect.td"
include "dialects/Train/TrainInterfaces.td"

//===-- convolution --------------------------------------------------------===//

def Train_ConvOp : Train_PureOp<"conv", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "convolution of [N, C, spatial...] with [M, C / groups, window...]";
  let description = [{
    `y[n, m, o] = bias[m] + sum over c, k of x[n, c, o * strides + k * dilations - low] * w[m, c, k]`, c over the channels of
    m's group, x zero outside of its bounds: cross-correlation, as ONNX's Conv and torch.nn.functional.conv2d.

    ```mlir
    %y = train.conv %x, %w bias %b strides [2, 2] dilations [1, 1] low [3, 3] high [3, 3] groups 1
        : (tensor<4x3x224x224xf32>, tensor<64x3x7x7xf32>, tensor<64xf32>) -> tensor<4x64x112x112xf32>
    ```

    **Constraints**
    - (conv_c1) `input` is [N, C, spatial...] with one to three spatial dimensions, `weight` [M, C / groups, window...] of the
      same rank and element type; `groups` divides C and M.
    - (conv_c2) strides and dilations >= 1, low and high >= 0, one of each for a spatial dimension.
    - (conv_c3) the window, spaced out by `dilations`, fits into the padded input.
    - (conv_c4) `bias` is [M].
  }];
  let arguments = (ins Train_FloatTensor:$input, Train_FloatTensor:$weight, Optional<Train_FloatTensor>:$bias,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$low,
                       DenseI64ArrayAttr:$high, I64Attr:$groups);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = [{
    $input `,` $weight (`bias` $bias^)? `strides` $strides `dilations` $dilations `low` $low `high` $high `groups` $groups
    attr-dict `:` functional-type(operands, results)
  }];
}

def Train_ConvInputGradOp
    : Train_PureOp<"conv_input_grad", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "the gradient of a convolution's input; also the transposed convolution";
  let description = [{
    What `train.conv` multiplies by a weight on the way forward comes back by the same weight: every element of `gradient`,
    times the window, is added at its place in the result of shape `shape`.

    **Constraints**
    - (conv_input_grad_c1) `gradient` has the type of `train.conv` on an input of shape `shape` with `weight`.
  }];
  let arguments = (ins Train_FloatTensor:$gradient, Train_FloatTensor:$weight, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high, I64Attr:$groups,
                       DenseI64ArrayAttr:$shape);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = [{
    $gradient `,` $weight `strides` $strides `dilations` $dilations `low` $low `high` $high `groups` $groups `into` $shape
    attr-dict `:` functional-type(operands, results)
  }];
}

def Train_ConvWeightGradOp : Train_PureOp<"conv_weight_grad"> {
  let summary = "the gradient of a convolution's weight";
  let description = [{
    `dw[m, c, k] = sum over n, o of gradient[n, m, o] * x[n, c, o * strides + k * dilations - low]`. The sum runs over pieces
    that follow from the shapes alone, added in order.

    **Constraints**
    - (conv_weight_grad_c1) `gradient` has the type of `train.conv` on `input` with a weight of shape `shape`.
    - (conv_weight_grad_c2) `wide`, which leaves the sums in f32, is for operands of 16 bits.
  }];
  let arguments = (ins Train_FloatTensor:$gradient, Train_FloatTensor:$input, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high, I64Attr:$groups,
                       DenseI64ArrayAttr:$shape, UnitAttr:$wide);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = [{
    $gradient `,` $input `strides` $strides `dilations` $dilations `low` $low `high` $high `groups` $groups `into` $shape
    attr-dict `:` functional-type(operands, results)
  }];
}

//===-- pooling ------------------------------------------------------------===//

class Train_PoolOp<string mnemonic, string what>
    : Train_PureOp<mnemonic, [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = what;
  let description = [{
    A window of `window` elements, `dilations` apart, moves over [N, C, spatial...] in steps of `strides`, beginning `low`
    before the input and ending at most `high` after it. What lies outside of the input is no element of the window.

    **Constraints**
    - (pool_c1) `input` is [N, C, spatial...] with one to three spatial dimensions; window, strides and dilations >= 1, low and
      high >= 0, one of each for a spatial dimension.
    - (pool_c2) the window fits into the padded input, and at every place it holds an element of the input.
  }];
  let arguments = (ins Train_FloatTensor:$input, DenseI64ArrayAttr:$window, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = [{
    $input `window` $window `strides` $strides `dilations` $dilations `low` $low `high` $high
    attr-dict `:` functional-type(operands, results)
  }];
}
def Train_MaxPoolOp : Train_PoolOp<"max_pool", "the largest element of each window; NaN wins">;
def Train_AveragePoolOp : Train_PoolOp<"average_pool", "the mean of the elements of each window">;

def Train_MaxPoolGradOp : Train_PureOp<"max_pool_grad"> {
  let summary = "the gradient of max_pool";
  let description = [{
    The gradient of a window goes to its first largest element, in row-major order, as in PyTorch; the forward pass keeps
    nothing but its input for it.

    **Constraints**
    - (max_pool_grad_c1) `gradient` has the type of `train.max_pool` on `input`.
  }];
  let arguments = (ins Train_FloatTensor:$gradient, Train_FloatTensor:$input, DenseI64ArrayAttr:$window,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$low,
                       DenseI64ArrayAttr:$high);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = [{
    $gradient `,` $input `window` $window `strides` $strides `dilations` $dilations `low` $low `high` $high
    attr-dict `:` functional-type(operands, results)
  }];
}

def Train_AveragePoolGradOp : Train_PureOp<"average_pool_grad"> {
  let summary = "the gradient of average_pool";
  let description = [{
    Each element of a window gets the window's gradient divided by the number of its elements.

    **Constraints**
    - (average_pool_grad_c1) `gradient` has the type of `train.average_pool` on an input of shape `shape`.
  }];
  let arguments = (ins Train_FloatTensor:$gradient, DenseI64ArrayAttr:$window, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                       DenseI64ArrayAttr:$shape);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = [{
    $gradient `window` $window `strides` $strides `dilations` $dilations `low` $low `high` $high `into` $shape
    attr-dict `:` functional-type(operands, results)
  }];
}

#endif // DS_TRAIN_CONV_OPS_TD
