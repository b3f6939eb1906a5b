//===- LinearOps.td - matrix products and sums ----------------------------===//
#ifndef DS_TRAIN_LINEAR_OPS_TD
#define DS_TRAIN_LINEAR_OPS_TD

include "dialects/Train/TrainDialect.td"
include "dialects/Train/TrainInterfaces.td"

def Train_MatmulOp
    : Train_PureOp<"matmul", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "matrix product over the last two dimensions, plus a bias";
  let description = [{
    `result[..., M, N] = op(lhs)[..., M, K] op(rhs)[..., K, N] + bias[N]`; op transposes the last two dimensions where the
    flag says so. Leading dimensions broadcast as in torch.matmul.

    **Constraints**
    - (matmul_c1) both operands have at least two dimensions and one element type.
    - (matmul_c2) the contracted dimensions agree.
    - (matmul_c3) the leading dimensions broadcast.
    - (matmul_c4) `bias` has one dimension of size N.
    - (matmul_c5) `wide`, which leaves the sums in f32, is for operands of 16 bits.
  }];
  let arguments = (ins Train_FloatTensor:$lhs, Train_FloatTensor:$rhs, Optional<Train_FloatTensor>:$bias,
                       UnitAttr:$trans_a, UnitAttr:$trans_b, UnitAttr:$wide);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = [{
    $lhs (`transposed` $trans_a^)? `,` $rhs (`transposed` $trans_b^)? (`bias` $bias^)? attr-dict
    `:` functional-type(operands, results)
  }];
}

def Train_MatmulGeluTanhOp : Train_PureOp<"matmul_gelu_tanh"> {
  let summary = "a product and GELU's approximation by tanh of it";
  let description = [{
    `product` is train.matmul's, `result` train.gelu_tanh of it, which a kernel may take before it is rounded
    (CUBLASLT_EPILOGUE_GELU_AUX_BIAS).

    **Constraints**
    - (matmul_gelu_tanh_c1) those of train.matmul.
  }];
  let arguments = (ins Train_FloatTensor:$lhs, Train_FloatTensor:$rhs, Optional<Train_FloatTensor>:$bias,
                       UnitAttr:$trans_a, UnitAttr:$trans_b);
  let results = (outs Train_FloatTensor:$result, Train_FloatTensor:$product);
  let assemblyFormat = [{
    $lhs (`transposed` $trans_a^)? `,` $rhs (`transposed` $trans_b^)? (`bias` $bias^)? attr-dict
    `:` functional-type(operands, results)
  }];
}

def Train_MatmulGeluTanhGradOp : Train_PureOp<"matmul_gelu_tanh_grad"> {
  let summary = "a product times the derivative of GELU's approximation by tanh";
  let description = [{
    `result = lhs rhs * gelu_tanh'(input)`, of which a kernel may take the product before it is rounded
    (CUBLASLT_EPILOGUE_DGELU).

    **Constraints**
    - (matmul_gelu_tanh_grad_c1) those of train.matmul; `input` has the type of the result.
  }];
  let arguments = (ins Train_FloatTensor:$lhs, Train_FloatTensor:$rhs, Train_FloatTensor:$input,
                       UnitAttr:$trans_a, UnitAttr:$trans_b);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = [{
    $lhs (`transposed` $trans_a^)? `,` $rhs (`transposed` $trans_b^)? `of` $input attr-dict
    `:` functional-type(operands, results)
  }];
}

def Train_LinearWeightGradOp : Train_PureOp<"linear_weight_grad"> {
  let summary = "the gradients of a linear layer's weight and bias";
  let description = [{
    Of `input [rows, M]` and `gradient [rows, N]` of the layer's result: `weight = input^T gradient [M, N]`, or with
    `transposed`, for a weight as torch.nn.Linear keeps it, `gradient^T input [N, M]`; and `bias [N]`, the sums of gradient's
    columns. cuBLASLt makes both in one product (CUBLASLT_EPILOGUE_BGRADA and BGRADB).

    **Constraints**
    - (linear_weight_grad_c1) `gradient` and `input` are matrices of as many rows and of one element type.
    - (linear_weight_grad_c2) `wide`, which leaves the sums in f32, is for operands of 16 bits.
  }];
  let arguments = (ins Train_FloatTensor:$gradient, Train_FloatTensor:$input, UnitAttr:$transposed, UnitAttr:$wide);
  let results = (outs Train_FloatTensor:$weight, Train_FloatTensor:$bias);
  let assemblyFormat = [{
    $gradient `,` $input (`transposed` $transposed^)? attr-dict `:` functional-type(operands, results)
  }];
}

def Train_CodeTensor : StaticShapeTensorOf<[UI8]>;
def Train_ScaleTensor : StaticShapeTensorOf<[F32]>;

def Train_QuantizeFp8Op : Train_PureOp<"quantize_fp8"> {
  let summary = "a matrix in 8 bits, with one scale or one for each block";
  let description = [{
    `codes`, as they lie or `transposed`, are those of `input` divided by `scale`, in the format e4m3 or e5m2. The scale makes the largest
    magnitude of `input` the largest number of the format. `per` a block of `codes` each block has such a scale: 128 codes of a line, "1x128",
    or those of 128 lines, "128x128", where blocks at an edge may be smaller. Without a gradient: `ds-quantize-products` makes it behind the
    differentiation.

    **Constraints**
    - (quantize_fp8_c1) `input` is a matrix.
    - (quantize_fp8_c2) `format` is "e4m3" or "e5m2".
    - (quantize_fp8_c3) `block` is "1x128" or "128x128", if it is there.
  }];
  let arguments = (ins StaticShapeTensorOf<[F32, BF16]>:$input, StrAttr:$format, OptionalAttr<StrAttr>:$block, UnitAttr:$transposed);
  let results = (outs Train_CodeTensor:$codes, Train_ScaleTensor:$scale);
  let assemblyFormat = [{
    $input $format (`per` $block^)? (`transposed` $transposed^)? attr-dict `:` functional-type(operands, results)
  }];
}

def Train_Fp8MatmulOp : Train_PureOp<"fp8_matmul"> {
  let summary = "the product of two matrices in 8 bits";
  let description = [{
    `result[M, N] = a[M, K] b[N, K]^T a_scale b_scale + bias[N]` of the numbers that codes stand for: what GPUs have is the product along the
    innermost dimension of both. `per` blocks the parts of that sum are multiplied by the scales of their blocks.

    **Constraints**
    - (fp8_matmul_c1) `a` and `b` are matrices of as many columns.
    - (fp8_matmul_c2) `a_format` and `b_format` are "e4m3" or "e5m2", and one is "e4m3".
    - (fp8_matmul_c3) `bias` has one dimension of size N.
    - (fp8_matmul_c4) with `wide` the result is f32 and there is no bias; else it is bf16.
    - (fp8_matmul_c5) `a_block` and `b_block` are "1x128" or "128x128", and one is "1x128"; or neither is there.
    - (fp8_matmul_c6) scales have the shapes of those of `quantize_fp8`.
  }];
  let arguments = (ins Train_CodeTensor:$a, Train_ScaleTensor:$a_scale, Train_CodeTensor:$b, Train_ScaleTensor:$b_scale,
                       Optional<StaticShapeTensorOf<[BF16]>>:$bias, StrAttr:$a_format, StrAttr:$b_format,
                       OptionalAttr<StrAttr>:$a_block, OptionalAttr<StrAttr>:$b_block, UnitAttr:$wide);
  let results = (outs StaticShapeTensorOf<[F32, BF16]>:$result);
  let assemblyFormat = [{
    $a `by` $a_scale $a_format (`per` $a_block^)? `,` $b `by` $b_scale $b_format (`per` $b_block^)? (`bias` $bias^)?
    attr-dict `:` functional-type(operands, results)
  }];
}

class Train_ReduceOp<string mnemonic, string what, Type operand = Train_NumberTensor, dag more = (ins)>
    : Train_PureOp<mnemonic, [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = what;
  let description = [{
    The reduced dimensions are gone from the result; a reshape brings them back as 1 where ONNX keeps them.

    **Constraints**
    - (reduce_c1) `axes` are dimensions of `input`, ascending, each once.
    - (reduce_c2) `wide`, which leaves a sum or mean in f32, is for an `input` of 16 bits.
  }];
  let arguments = !con((ins operand:$input, DenseI64ArrayAttr:$axes), more);
  let results = (outs operand:$result);
  let assemblyFormat = "$input `over` $axes attr-dict `:` functional-type(operands, results)";
}
def Train_ReduceSumOp
    : Train_ReduceOp<"reduce_sum", "sum over dimensions", Train_NumberTensor, (ins UnitAttr:$wide)>;
def Train_ReduceMeanOp
    : Train_ReduceOp<"reduce_mean", "mean over dimensions", Train_FloatTensor, (ins UnitAttr:$wide)>;
def Train_ReduceMaxOp : Train_ReduceOp<"reduce_max", "maximum over dimensions; equal maxima share the gradient">;

#endif // DS_TRAIN_LINEAR_OPS_TD
