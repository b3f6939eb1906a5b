//===- IndexOps.td - by element: gathers, scatters, searches, running sums ===//
#ifndef DS_TRAIN_INDEX_OPS_TD
#define DS_TRAIN_INDEX_OPS_TD

include "dialects/Train/TrainDialect.td"
include "dialects/Train/TrainInterfaces.td"

def Train_GatherElementsOp
    : Train_PureOp<"gather_elements", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "look up one element by index for each element of the result";
  let description = [{
    `result[.., j, ..] = data[.., indices[.., j, ..], ..]` at dimension `axis`. Cf. torch.gather. Negative indices count from
    the end; others out of range stop the run with a message.

    **Constraints**
    - (gather_elements_c1) `axis` is a dimension of `data`.
    - (gather_elements_c2) `indices` has `data`'s rank and, apart from `axis`, no dimension larger than `data`'s.
    - (gather_elements_c3) the result has `indices`' shape.
  }];
  let arguments = (ins Train_Tensor:$data, Train_IndexTensor:$indices, I64Attr:$axis);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$data `,` $indices `along` $axis attr-dict `:` functional-type(operands, results)";
}

def Train_ScatterReduction : I32EnumAttr<"ScatterReduction", "what becomes of an element that an update meets", [
    I32EnumAttrCase<"Replace", 0, "replace">, I32EnumAttrCase<"Add", 1, "add">, I32EnumAttrCase<"Mul", 2, "mul">,
    I32EnumAttrCase<"Max", 3, "max">, I32EnumAttrCase<"Min", 4, "min">]> {
  let cppNamespace = "::ds::train";
  let genSpecializedAttr = 0;
}
def Train_ScatterReductionAttr : EnumAttr<Train_Dialect, Train_ScatterReduction, "scatter_reduction">;

def Train_ScatterElementsOp
    : Train_PureOp<"scatter_elements", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "write each update at its index";
  let description = [{
    `result = data`, then `result[.., indices[.., j, ..], ..]` at dimension `axis` is replaced by, added to, ... each
    `updates[.., j, ..]` in row-major order. Cf. torch.Tensor.scatter_reduce. Indices are as of `train.gather_elements`. Only
    `replace` and `add` have a gradient; that of `replace` takes it that no two updates meet.

    **Constraints**
    - (scatter_elements_c1), (scatter_elements_c2) `axis` and `indices` as of `train.gather_elements`.
    - (scatter_elements_c3) `updates` has `indices`' shape and `data`'s element type.
    - (scatter_elements_c4) an i1 is replaced only.
  }];
  let arguments = (ins Train_Tensor:$data, Train_IndexTensor:$indices, Train_Tensor:$updates, I64Attr:$axis,
                       Train_ScatterReductionAttr:$reduction);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = [{
    $reduction $data `,` $indices `,` $updates `along` $axis attr-dict `:` functional-type(operands, results)
  }];
}

def Train_ArgMaxOp : Train_PureOp<"arg_max"> {
  let summary = "the index of the largest element along one dimension";
  let description = [{
    Of equal ones the first, or the last with `last`; NaN is the largest. The dimension is gone from the result. Cf.
    torch.argmax.

    **Constraints**
    - (arg_max_c1) `axis` is a dimension of `input`, and not empty.
  }];
  let arguments = (ins Train_NumberTensor:$input, I64Attr:$axis, UnitAttr:$last);
  let results = (outs Train_IndexTensor:$result);
  let assemblyFormat = "(`last` $last^)? $input `along` $axis attr-dict `:` functional-type(operands, results)";
}

def Train_TopKOp : Train_PureOp<"top_k", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "the k largest elements along the last dimension, and where they are";
  let description = [{
    In descending order, equal ones by index; ascending the k smallest with `smallest`. NaN is the largest. Cf. torch.topk.

    **Constraints**
    - (top_k_c1) `input` has a dimension.
    - (top_k_c2) `k` is at least 0 and at most the last one.
  }];
  let arguments = (ins Train_NumberTensor:$input, I64Attr:$k, UnitAttr:$smallest);
  let results = (outs Train_NumberTensor:$values, Train_IndexTensor:$indices);
  let assemblyFormat = "(`smallest` $smallest^)? $k `of` $input attr-dict `:` functional-type(operands, results)";
}

def Train_CumSumOp : Train_PureOp<"cumsum", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "the sum of all elements up to each one along one dimension";
  let description = [{
    `exclusive` leaves out the element itself, `reverse` sums from the end. Cf. torch.cumsum.

    **Constraints**
    - (cumsum_c1) `axis` is a dimension of `input`.
  }];
  let arguments = (ins Train_NumberTensor:$input, I64Attr:$axis, UnitAttr:$exclusive, UnitAttr:$reverse);
  let results = (outs Train_NumberTensor:$result);
  let assemblyFormat = [{
    (`exclusive` $exclusive^)? (`reverse` $reverse^)? $input `along` $axis attr-dict
    `:` functional-type(operands, results)
  }];
}

#endif // DS_TRAIN_INDEX_OPS_TD
