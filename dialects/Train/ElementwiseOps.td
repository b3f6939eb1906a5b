//===- ElementwiseOps.td - arithmetic, comparisons, activations -----------===//
#ifndef DS_TRAIN_ELEMENTWISE_OPS_TD
#define DS_TRAIN_ELEMENTWISE_OPS_TD

include "dialects/Train/TrainDialect.td"
include "dialects/Train/TrainInterfaces.td"

class Train_DifferentiableTraits {
  list<Trait> value = [DeclareOpInterfaceMethods<DifferentiableOpInterface>];
}

//===-- two operands -------------------------------------------------------===//

class Train_BinaryOp<string mnemonic, string what, Type operand, list<Trait> traits = []>
    : Train_PureOp<mnemonic, !listconcat([Train_Elementwise], traits)> {
  let summary = what;
  let description = [{
    Broadcasts as in NumPy.

    **Constraints**
    - (elementwise_c1) the operands have one element type.
    - (elementwise_c2) their shapes broadcast: aligned at the last dimension, each pair is equal or one of the two is 1.
    - (elementwise_c3) the result has the broadcast shape.
  }];
  let arguments = (ins operand:$lhs, operand:$rhs);
  let results = (outs operand:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
}
class Train_ArithmeticOp<string mnemonic, string what, Type operand = Train_NumberTensor>
    : Train_BinaryOp<mnemonic, what, operand, Train_DifferentiableTraits<>.value> {
  let hasFolder = 1;
}
class Train_LogicalOp<string mnemonic, string what> : Train_BinaryOp<mnemonic, what, Train_BoolTensor>;

def Train_AddOp : Train_ArithmeticOp<"add", "lhs + rhs">;
def Train_SubOp : Train_ArithmeticOp<"sub", "lhs - rhs">;
def Train_MulOp : Train_ArithmeticOp<"mul", "lhs * rhs">;
def Train_DivOp : Train_ArithmeticOp<"div", "lhs / rhs; integers truncate">;
def Train_PowOp : Train_ArithmeticOp<"pow", "lhs to the power rhs", Train_FloatTensor>;
def Train_MaxOp : Train_BinaryOp<"max", "the larger; NaN wins", Train_NumberTensor,
                                 Train_DifferentiableTraits<>.value>;
def Train_MinOp : Train_BinaryOp<"min", "the smaller; NaN wins", Train_NumberTensor,
                                 Train_DifferentiableTraits<>.value>;
def Train_AndOp : Train_LogicalOp<"and", "both">;
def Train_OrOp : Train_LogicalOp<"or", "either">;
def Train_XorOp : Train_LogicalOp<"xor", "exactly one">;

class Train_CompareOp<string mnemonic, string what> : Train_PureOp<mnemonic, [Train_Elementwise]> {
  let summary = what;
  let description = "The result is i1. Constraints elementwise_c1 to elementwise_c3 hold.";
  let arguments = (ins Train_Tensor:$lhs, Train_Tensor:$rhs);
  let results = (outs Train_BoolTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
}
def Train_EqualOp : Train_CompareOp<"equal", "lhs == rhs">;
def Train_LessOp : Train_CompareOp<"less", "lhs < rhs">;
def Train_LessEqualOp : Train_CompareOp<"less_equal", "lhs <= rhs">;
def Train_GreaterOp : Train_CompareOp<"greater", "lhs > rhs">;
def Train_GreaterEqualOp : Train_CompareOp<"greater_equal", "lhs >= rhs">;

//===-- three operands -----------------------------------------------------===//

def Train_SelectOp
    : Train_PureOp<"select", !listconcat([Train_Elementwise], Train_DifferentiableTraits<>.value)> {
  let summary = "condition ? on_true : on_false";
  let description = [{
    Broadcasts all three. Cf. torch.where.

    **Constraints**
    - (elementwise_c1) `on_true` and `on_false` have one element type.
    - (elementwise_c2), (elementwise_c3) as of `train.add`.
  }];
  let arguments = (ins Train_BoolTensor:$condition, Train_Tensor:$on_true, Train_Tensor:$on_false);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$condition `,` $on_true `,` $on_false attr-dict `:` functional-type(operands, results)";
}

//===-- one operand --------------------------------------------------------===//

class Train_UnaryOp<string mnemonic, string what, Type operand = Train_FloatTensor,
                    list<Trait> traits = Train_DifferentiableTraits<>.value>
    : Train_PureOp<mnemonic, !listconcat([Train_Elementwise], traits)> {
  let summary = what;
  let arguments = (ins operand:$input);
  let results = (outs operand:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}
def Train_NegOp : Train_UnaryOp<"neg", "-input", Train_NumberTensor>;
def Train_AbsOp : Train_UnaryOp<"abs", "|input|", Train_NumberTensor>;
def Train_SqrtOp : Train_UnaryOp<"sqrt", "square root">;
def Train_RsqrtOp : Train_UnaryOp<"rsqrt", "1 / sqrt(input)">;
def Train_ReciprocalOp : Train_UnaryOp<"reciprocal", "1 / input">;
def Train_ExpOp : Train_UnaryOp<"exp", "e to the power input">;
def Train_LogOp : Train_UnaryOp<"log", "natural logarithm">;
def Train_Log1pOp : Train_UnaryOp<"log1p", "natural logarithm of 1 + input">;
def Train_Expm1Op : Train_UnaryOp<"expm1", "e to the power input, less 1">;
def Train_GeluTanhOp : Train_UnaryOp<"gelu_tanh", "GELU's approximation by tanh, as torch.nn.functional.gelu's">;
def Train_GeluTanhSlopeOp : Train_UnaryOp<"gelu_tanh_slope", "the derivative of gelu_tanh", Train_FloatTensor, []>;
def Train_ErfOp : Train_UnaryOp<"erf", "error function">;
def Train_TanhOp : Train_UnaryOp<"tanh", "hyperbolic tangent">;
def Train_SigmoidOp : Train_UnaryOp<"sigmoid", "1 / (1 + exp(-input))">;
def Train_ReluOp : Train_UnaryOp<"relu", "max(input, 0); the gradient at 0 is 0">;
def Train_SinOp : Train_UnaryOp<"sin", "sine">;
def Train_CosOp : Train_UnaryOp<"cos", "cosine">;
def Train_AtanOp : Train_UnaryOp<"atan", "inverse tangent">;
def Train_SignOp : Train_UnaryOp<"sign", "-1, 0 or 1; its gradient is zero", Train_NumberTensor>;
def Train_FloorOp : Train_UnaryOp<"floor", "largest integer not above; its gradient is zero">;
def Train_CeilOp : Train_UnaryOp<"ceil", "smallest integer not below; its gradient is zero">;
def Train_RoundOp : Train_UnaryOp<"round", "nearest integer, halves to the even one; its gradient is zero">;
def Train_NotOp : Train_UnaryOp<"not", "negation", Train_BoolTensor, []>;

def Train_IsNanOp : Train_PureOp<"is_nan", [Train_Elementwise]> {
  let summary = "whether each element is NaN";
  let arguments = (ins Train_FloatTensor:$input);
  let results = (outs Train_BoolTensor:$result);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

def Train_CastOp : Train_PureOp<"cast", !listconcat([Train_Elementwise], Train_DifferentiableTraits<>.value)> {
  let summary = "convert the element type";
  let description = [{
    As torch.Tensor.to: float to integer truncates, anything to i1 is `!= 0`. The gradient flows between float types only.

    **Constraints**
    - (cast_c1) `element_type` is f32, f64, bf16, f16, i64, i32 or i1.
  }];
  let arguments = (ins Train_Tensor:$input, TypeAttr:$element_type);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$input `to` $element_type attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

//===-- fused --------------------------------------------------------------===//

def Train_FusedOp : Train_Op<"fused", [Pure, IsolatedFromAbove, SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "a chain of elementwise ops that runs as one loop";
  let description = [{
    Made by `ds-fuse-elementwise`. The body holds elementwise ops and constants; its arguments are the operands.

    ```mlir
    %y = train.fused %x, %b {
    ^bb0(%a0: tensor<4x8xf32>, %a1: tensor<8xf32>):
      %0 = train.add %a0, %a1 : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
      %1 = train.tanh %0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
      train.yield %1 : tensor<4x8xf32>
    } : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    ```

    **Constraints**
    - (fused_c1) the body's arguments have the operands' types, what it yields the results'.
    - (fused_c2) every op of the body is elementwise, a constant or the terminator.
    - (fused_c3) all results have one shape.
  }];
  let arguments = (ins Variadic<Train_Tensor>:$inputs);
  let results = (outs Variadic<Train_Tensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$inputs $body attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_YieldOp : Train_Op<"yield", [Pure, Terminator, HasParent<"FusedOp">]> {
  let summary = "the results of a fused body";
  let arguments = (ins Variadic<Train_Tensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>];
}

#endif // DS_TRAIN_ELEMENTWISE_OPS_TD
