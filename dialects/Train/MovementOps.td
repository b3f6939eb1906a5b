//===- MovementOps.td - constants, reshapes, slices, gathers --------------===//
#ifndef DS_TRAIN_MOVEMENT_OPS_TD
#define DS_TRAIN_MOVEMENT_OPS_TD

include "dialects/Train/TrainDialect.td"
include "dialects/Train/TrainInterfaces.td"

class Train_MovementOp<string mnemonic, list<Trait> traits = []>
    : Train_PureOp<mnemonic, !listconcat([DeclareOpInterfaceMethods<DifferentiableOpInterface>], traits)>;

def Train_ConstantOp : Train_PureOp<"constant", [ConstantLike]> {
  let summary = "a value known at compile time";
  let description = "Scalars, index tables and masks; never weights, which are variables.";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$value attr-dict";
  let hasFolder = 1;
}

def Train_ReshapeOp : Train_MovementOp<"reshape"> {
  let summary = "the same elements, row-major, in another shape";
  let description = [{
    Moves nothing. Squeeze, Unsqueeze, Flatten and Identity come in as this op.

    **Constraints**
    - (reshape_c1) `shape` has no negative dimension and as many elements as `input`.
  }];
  let arguments = (ins Train_Tensor:$input, DenseI64ArrayAttr:$shape);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$input `to` $shape attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def Train_TransposeOp : Train_MovementOp<"transpose"> {
  let summary = "permute dimensions";
  let description = [{
    Result dimension i is input dimension `perm[i]`. Cf. torch.permute.

    **Constraints**
    - (transpose_c1) `perm` holds each dimension of `input` once.
  }];
  let arguments = (ins Train_Tensor:$input, DenseI64ArrayAttr:$perm);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$input `by` $perm attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def Train_BroadcastOp : Train_MovementOp<"broadcast"> {
  let summary = "repeat along new and unit dimensions";
  let description = [{
    Cf. torch.Tensor.expand; the gradient is the sum over the repeats.

    **Constraints**
    - (broadcast_c1) `input` broadcasts to exactly `shape`.
  }];
  let arguments = (ins Train_Tensor:$input, DenseI64ArrayAttr:$shape);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$input `to` $shape attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def Train_SliceOp : Train_MovementOp<"slice"> {
  let summary = "every steps[i]-th element from starts[i] on";
  let description = [{
    Result dimension i has `sizes[i]` elements: input indices `starts[i] + k * steps[i]`.

    **Constraints**
    - (slice_c1) `starts`, `sizes` and `steps` have one entry per dimension.
    - (slice_c2) starts >= 0, sizes >= 0, steps >= 1.
    - (slice_c3) the last index read lies in the dimension.
  }];
  let arguments = (ins Train_Tensor:$input, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$sizes,
                       DenseI64ArrayAttr:$steps);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = [{
    $input `from` $starts `size` $sizes `step` $steps attr-dict `:` functional-type(operands, results)
  }];
  let hasFolder = 1;
}

def Train_PadOp : Train_MovementOp<"pad"> {
  let summary = "surround and space out with one value";
  let description = [{
    Result dimension i has `low[i] + n + (n - 1) * interior[i] + high[i]` elements (n that of the input; without the
    middle term when n is 0). The dual of `train.slice`. Cf. XLA's Pad.

    **Constraints**
    - (pad_c1) `low`, `high` and `interior` have one entry per dimension, none negative.
  }];
  let arguments = (ins Train_Tensor:$input, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                       DenseI64ArrayAttr:$interior, F64Attr:$value);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = [{
    $input `low` $low `high` $high `interior` $interior `with` $value attr-dict `:` functional-type(operands, results)
  }];
}

def Train_ConcatOp : Train_MovementOp<"concat"> {
  let summary = "join along one dimension";
  let description = [{
    **Constraints**
    - (concat_c1) there is at least one input, and `axis` is one of its dimensions.
    - (concat_c2) the inputs have one element type and agree in every dimension but `axis`.
  }];
  let arguments = (ins Variadic<Train_Tensor>:$inputs, I64Attr:$axis);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$inputs `along` $axis attr-dict `:` functional-type(operands, results)";
}

def Train_GatherOp : Train_MovementOp<"gather"> {
  let summary = "look up slices by index";
  let description = [{
    `numpy.take(data, indices, axis)`; an embedding is a gather along 0. Negative indices count from the end; others out of
    range stop the run with a message.

    **Constraints**
    - (gather_c1) `axis` is a dimension of `data`.
    - (gather_c2) the result's shape is `data`'s with `axis` replaced by `indices`' shape.
  }];
  let arguments = (ins Train_Tensor:$data, Train_IndexTensor:$indices, I64Attr:$axis);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$data `,` $indices `along` $axis attr-dict `:` functional-type(operands, results)";
}

def Train_GatherGradOp : Train_PureOp<"gather_grad"> {
  let summary = "the gradient of a gather's data";
  let description = [{
    Zero, plus each slice of `gradient` at its index; contributions to one index are added in the order of `indices`.

    **Constraints**
    - (gather_grad_c1) `gradient` has the shape of `train.gather` on `shape`, `indices` and `axis`.
    - (gather_grad_c2) `wide`, which leaves the sums in f32, is for a `gradient` of 16 bits.
  }];
  let arguments = (ins Train_FloatTensor:$gradient, Train_IndexTensor:$indices, I64Attr:$axis,
                       DenseI64ArrayAttr:$shape, UnitAttr:$wide);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = [{
    $gradient `,` $indices `along` $axis `into` $shape attr-dict `:` functional-type(operands, results)
  }];
}

#endif // DS_TRAIN_MOVEMENT_OPS_TD
