//===- RegroupRmsNorm.cpp - find root mean square norms in what exporters write ---===//
//
// Every product is taken for the scaling at the end of a norm and followed up, op by op, to the rows. A step that is
// none of the forms below, or a value on the way that something else reads, and the product stays as it is.
// The op is RMSNorm (Zhang and Sennrich, NeurIPS 2019), torch.nn.functional.rms_norm.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/KernelSelection.h"
#include "compiler/passes/fusion/Passes.h"
#include "compiler/passes/fusion/RegroupedProducts.h"
#include "dialects/Train/Train.h"

namespace ds {
#define GEN_PASS_DEF_REGROUPRMSNORM
#include "compiler/passes/fusion/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

/// The op that makes `value`, if nothing but one reader needs it.
template <typename OpTy> OpTy onlyFor(Value value) { return value.hasOneUse() ? value.getDefiningOp<OpTy>() : OpTy(); }

/// What a norm is made of.
struct Parts {
  Value input, scale;
  double epsilon = 0;
};

/// Whether `value` is the square of `input`.
bool isSquare(Value value, Value input) {
  if (auto power = onlyFor<train::PowOp>(value))
    return power.getLhs() == input && splatConstant(power.getRhs()) == 2.0;
  auto product = onlyFor<train::MulOp>(value);
  return product && product.getLhs() == input && product.getRhs() == input;
}

/// Whether `value` is the mean of `input`'s squares over its last dimension, which stays as 1.
bool isMeanSquare(Value value, Value input) {
  auto kept = onlyFor<train::ReshapeOp>(value);
  auto mean = kept ? onlyFor<train::ReduceMeanOp>(kept.getInput()) : train::ReduceMeanOp();
  const auto last = int64_t(shapeOf(input).size()) - 1;
  return mean && mean.getAxes() == ArrayRef<int64_t>(last) && isSquare(mean.getInput(), input) &&
         shapeOf(value).size() == shapeOf(input).size() && shapeOf(value).back() == 1 &&
         shapeOf(value).drop_back() == shapeOf(input).drop_back();
}

/// The epsilon where `value` is the mean square of `input` and a number.
std::optional<double> spreadOf(Value value, Value input) {
  auto sum = onlyFor<train::AddOp>(value);
  if (!sum)
    return std::nullopt;
  if (isMeanSquare(sum.getLhs(), input))
    return splatConstant(sum.getRhs());
  return isMeanSquare(sum.getRhs(), input) ? splatConstant(sum.getLhs()) : std::nullopt;
}

/// The epsilon where `value` is sqrt(mean square of `input` + epsilon).
std::optional<double> rootOf(Value value, Value input) {
  auto root = onlyFor<train::SqrtOp>(value);
  return root ? spreadOf(root.getInput(), input) : std::nullopt;
}

/// The epsilon where `value` is 1 / sqrt(mean square of `input` + epsilon), in one op or two.
std::optional<double> reciprocalRootOf(Value value, Value input) {
  if (auto root = onlyFor<train::RsqrtOp>(value))
    return spreadOf(root.getInput(), input);
  if (auto inverse = onlyFor<train::ReciprocalOp>(value))
    return rootOf(inverse.getInput(), input);
  auto quotient = onlyFor<train::DivOp>(value);
  return quotient && splatConstant(quotient.getLhs()) == 1.0 ? rootOf(quotient.getRhs(), input) : std::nullopt;
}

/// Whether `value` is the rows of `parts.input` scaled to a mean square of one.
bool matchNormal(Value value, Parts &parts) {
  const auto found = [&](Value input, std::optional<double> epsilon) {
    parts.input = input;
    parts.epsilon = epsilon.value_or(0);
    return epsilon && *epsilon >= 0 && value.getType() == input.getType();
  };
  if (auto quotient = onlyFor<train::DivOp>(value))
    return found(quotient.getLhs(), rootOf(quotient.getRhs(), quotient.getLhs()));
  auto product = onlyFor<train::MulOp>(value);
  return product && (found(product.getLhs(), reciprocalRootOf(product.getRhs(), product.getLhs())) ||
                     found(product.getRhs(), reciprocalRootOf(product.getLhs(), product.getRhs())));
}

std::optional<Parts> match(train::MulOp scaling) {
  Parts parts;
  if (matchNormal(scaling.getLhs(), parts))
    parts.scale = scaling.getRhs();
  else if (matchNormal(scaling.getRhs(), parts))
    parts.scale = scaling.getLhs();
  else
    return std::nullopt;
  if (shapeOf(parts.scale) != shapeOf(parts.input).take_back(1))
    return std::nullopt;
  return parts;
}

struct RegroupRmsNorm : ds::impl::RegroupRmsNormBase<RegroupRmsNorm> {
  void runOnOperation() override {
    replaceProducts(getOperation(), [](OpBuilder &builder, train::MulOp scaling) -> Value {
      const std::optional<Parts> parts = match(scaling);
      return parts ? train::RmsNormOp::create(builder, scaling.getLoc(), parts->input, parts->scale,
                                              llvm::APFloat(parts->epsilon))
                         .getResult()
                   : Value();
    });
  }
};

} // namespace
