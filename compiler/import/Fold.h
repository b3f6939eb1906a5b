//===- Fold.h - computing with constants -------------------------------------===//
//
// Each function computes what the ONNX op of its name would, in the operands' own type: float32 sines are sinf, as in
// PyTorch. All arguments are valid: the op's builder has checked ranks, axes, types and result sizes. What is made is
// charged to the budget before it is allocated.
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/import/Constant.h"

#include <optional>
#include <type_traits>

namespace ds::import {

/// The type to compute in: integers wrap around, as they do at run time.
template <typename T, bool isFloat = std::is_floating_point_v<T>> struct WrappingType {
  using type = T;
};
template <typename T> struct WrappingType<T, false> {
  using type = std::make_unsigned_t<T>;
};
template <typename T> using Wrapping = typename WrappingType<T>::type;

enum class BinaryFold {
  Add,
  Sub,
  Mul,
  Div,
  Mod,
  Pow,
  Max,
  Min,
  And,
  Or,
  Xor,
  Equal,
  Less,
  LessEqual,
  Greater,
  GreaterEqual
};
enum class UnaryFold {
  Neg,
  Abs,
  Sqrt,
  Reciprocal,
  Exp,
  Log,
  Log1p,
  Expm1,
  Erf,
  Tanh,
  Sigmoid,
  Relu,
  Sin,
  Cos,
  Sign,
  Floor,
  Ceil,
  Round,
  Atan,
  Not,
  IsNan
};
enum class ReduceFold { Sum, Mean, Max, Min, Prod };

/// Elementwise on operands of one type that broadcast to `shape`; nothing where the operation does not exist on the
/// type. Throws Failure on an integer division by zero.
std::optional<Constant> foldBinary(BinaryFold kind, const Constant &lhs, const Constant &rhs, const Shape &shape,
                                   FoldBudget &budget);
std::optional<Constant> foldUnary(UnaryFold kind, const Constant &input, FoldBudget &budget);
Constant foldSelect(const Constant &condition, const Constant &onTrue, const Constant &onFalse, const Shape &shape,
                    FoldBudget &budget);
/// Float to integer truncates and saturates; anything to bool is "not zero".
Constant foldCast(const Constant &input, DType to, FoldBudget &budget);

/// `input` as a dense tensor of another shape with as many elements.
Constant foldReshape(const Constant &input, const Shape &shape, FoldBudget &budget);
Constant foldTranspose(const Constant &input, const std::vector<int64_t> &permutation);
/// Result index i of a dimension is input index starts + i * steps; steps may be negative.
Constant foldSlice(const Constant &input, const Shape &starts, const Shape &sizes, const Shape &steps);
Constant foldConcat(const std::vector<Constant> &inputs, size_t axis, FoldBudget &budget);
/// Indices are in range and not negative.
Constant foldGather(const Constant &data, const std::vector<int64_t> &indices, const Shape &indexShape, size_t axis,
                    FoldBudget &budget);
Constant foldGatherElements(const Constant &data, const std::vector<int64_t> &indices, const Shape &indexShape,
                            size_t axis, FoldBudget &budget);
Constant foldPad(const Constant &input, const Shape &low, const Shape &high, const Constant &value, FoldBudget &budget);
Constant foldCumSum(const Constant &input, size_t axis, bool exclusive, bool reverse, FoldBudget &budget);
/// Over ascending axes, keeping them as 1; nothing for types without arithmetic.
std::optional<Constant> foldReduce(ReduceFold kind, const Constant &input, const std::vector<int64_t> &axes,
                                   FoldBudget &budget);
/// start, start + delta, ...: `count` elements in the operands' type.
Constant foldRange(const Constant &start, const Constant &delta, int64_t count, FoldBudget &budget);
/// i1 [rows, cols]: whether column - row >= k (upper) or <= k.
Constant triangle(int64_t rows, int64_t cols, int64_t k, bool upper, FoldBudget &budget);

} // namespace ds::import
