//===- EvaluationForm.cpp - a forward pass as it is evaluated -------------===//
//
// What PyTorch's Module.eval() changes: a dropout hands on its input; a batch norm whose statistics are averaged
// over the batches normalizes by the running averages instead, and the averages are not updated. A batch norm
// without averages keeps the statistics of its batch, as with track_running_stats=False.
//
// What eval() makes of other random numbers, a graph of the training form does not say. Their means stand in their
// places, u being uniform in [0, 1):
//
//   cast(u < p), floor(u + p)   p, so that a stochastic depth x * floor(u + keep) / keep hands on x
//   cos(2 pi u)                 0, and so a normal number is its mean
//   u elsewhere                 1/2, so that a choice `u < p ? x : y` is the likelier one
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/train/EvaluationForm.h"

#include "dialects/Train/ChannelNorm.h"
#include "dialects/Train/Gradients.h"
#include "dialects/Train/StopGradient.h"

#include <cmath>
#include <numbers>

using namespace mlir;
using namespace ds;

static void dropDropout(func::FuncOp function) {
  for (auto dropout : llvm::make_early_inc_range(function.getOps<train::DropoutOp>())) {
    dropout.replaceAllUsesWith(dropout.getInput());
    dropout.erase();
  }
}

/// The variable that averages `statistic` over the batches; null where none does.
static FlatSymbolRefAttr runningAverageOf(Value statistic) {
  for (Operation *user : statistic.getUsers())
    if (auto update = dyn_cast<train::UpdateAverageOp>(user))
      return update.getVariableAttr();
  return {};
}

/// y = (x - running mean) / sqrt(running variance + epsilon) * scale + shift.
static void useRunningStatistics(train::BatchNormOp norm) {
  FlatSymbolRefAttr mean = runningAverageOf(norm.getMean()), variance = runningAverageOf(norm.getVariance());
  if (!mean || !variance)
    return;
  ImplicitLocOpBuilder b(norm.getLoc(), norm);
  Value readMean = train::ReadOp::create(b, norm.getMean().getType(), mean);
  Value readVariance = train::ReadOp::create(b, norm.getVariance().getType(), variance);
  norm.getResult().replaceAllUsesWith(train::normalizeChannels(b, norm.getInput(), norm.getScale(), norm.getShift(),
                                                               readMean, readVariance,
                                                               norm.getEpsilon().convertToDouble()));
}

/// The value before conversions between floats, and before the rounding down to what 16 bits hold: floor(x * s) / s.
static Value underRounding(Value value) {
  for (;;) {
    auto cast = value.getDefiningOp<train::CastOp>();
    auto scaled = value.getDefiningOp<train::MulOp>();
    auto floor = scaled ? scaled.getLhs().getDefiningOp<train::FloorOp>() : train::FloorOp();
    auto inner = floor ? floor.getInput().getDefiningOp<train::MulOp>() : train::MulOp();
    if (cast && isa<FloatType>(getElementTypeOrSelf(cast.getInput().getType())))
      value = cast.getInput();
    else if (inner && scaled.getRhs().getDefiningOp<train::ConstantOp>())
      value = inner.getLhs();
    else
      return value;
  }
}

static bool isTwoPi(Value value) {
  return std::abs(train::splatOf(value).value_or(0) - 2 * std::numbers::pi) < 1e-6; // of f32, too
}

static bool isUniform(Value value) { return bool(underRounding(value).getDefiningOp<train::UniformOp>()); }

/// The probability with which a comparison holds of a uniform number; null where it is of nothing else.
static Value probabilityOf(ImplicitLocOpBuilder &b, Operation *comparison) {
  Value low, high; // low < high
  if (isa_and_nonnull<train::LessOp, train::LessEqualOp>(comparison))
    low = comparison->getOperand(0), high = comparison->getOperand(1);
  else if (isa_and_nonnull<train::GreaterOp, train::GreaterEqualOp>(comparison))
    low = comparison->getOperand(1), high = comparison->getOperand(0);
  if (!low || isUniform(low) == isUniform(high) || !isa<FloatType>(getElementTypeOrSelf(low.getType())))
    return {};
  const Value bound = isUniform(low) ? high : low, one = train::scalar(b, bound, 1);
  const Value within = train::MinOp::create(b, train::MaxOp::create(b, bound, train::scalar(b, bound, 0)), one);
  return isUniform(low) ? within : train::SubOp::create(b, one, within).getResult();
}

/// The mean of an op that makes more of uniform numbers than a multiple of them; null of all others.
static Value meanOf(ImplicitLocOpBuilder &b, Operation *op) {
  if (auto cast = dyn_cast<train::CastOp>(op))
    return isa<FloatType>(cast.getElementType()) ? probabilityOf(b, cast.getInput().getDefiningOp()) : Value();
  if (auto floor = dyn_cast<train::FloorOp>(op)) {
    auto sum = underRounding(floor.getInput()).getDefiningOp<train::AddOp>();
    if (sum && isUniform(sum.getLhs()) != isUniform(sum.getRhs()))
      return isUniform(sum.getLhs()) ? sum.getRhs() : sum.getLhs();
  }
  if (auto cosine = dyn_cast<train::CosOp>(op))
    if (auto angle = cosine.getInput().getDefiningOp<train::MulOp>();
        angle && isUniform(angle.getLhs()) && isTwoPi(angle.getRhs()))
      return train::scalar(b, cosine.getInput(), 0);
  return {};
}

/// `value` in the shape and element type of `like`.
static Value likeValue(ImplicitLocOpBuilder &b, Value value, Value like) {
  const auto type = cast<RankedTensorType>(like.getType());
  if (getElementTypeOrSelf(value.getType()) != type.getElementType())
    value = train::CastOp::create(b, value, TypeAttr::get(type.getElementType()));
  return value.getType() == type ? value : train::BroadcastOp::create(b, value, type.getShape()).getResult();
}

static void putMeansForDraws(func::FuncOp function) {
  for (Operation &op : llvm::make_early_inc_range(function.getBody().front())) {
    ImplicitLocOpBuilder b(op.getLoc(), &op);
    if (Value mean = meanOf(b, &op))
      op.getResult(0).replaceAllUsesWith(likeValue(b, mean, op.getResult(0)));
  }
  for (auto uniform : llvm::make_early_inc_range(function.getOps<train::UniformOp>())) {
    ImplicitLocOpBuilder b(uniform.getLoc(), uniform);
    uniform.replaceAllUsesWith(likeValue(b, train::scalar(b, uniform, 0.5), uniform));
    uniform.erase();
  }
}

static bool chooseMode(func::FuncOp function, bool training) {
  bool any = false;
  for (auto choice : llvm::make_early_inc_range(function.getOps<train::SelectOp>()))
    if (choice->hasAttr(train::byModeAttribute)) {
      choice.replaceAllUsesWith(training ? choice.getOnTrue() : choice.getOnFalse());
      choice.erase();
      any = true;
    }
  return any;
}

bool ds::makeTrainingForm(func::FuncOp function) { return chooseMode(function, /*training=*/true); }

void ds::makeEvaluationForm(func::FuncOp function) {
  chooseMode(function, /*training=*/false);
  dropDropout(function);
  putMeansForDraws(function);
  SmallVector<train::BatchNormOp> norms(function.getOps<train::BatchNormOp>());
  for (train::BatchNormOp norm : norms)
    useRunningStatistics(norm);
  SmallVector<train::UpdateAverageOp> updates(function.getOps<train::UpdateAverageOp>());
  for (train::UpdateAverageOp update : updates)
    update.erase();
  for (train::BatchNormOp norm : norms)
    if (norm.use_empty())
      norm.erase();
}
