//===- EvaluationForm.cpp - a forward pass as it is evaluated -------------===//
//
// What PyTorch's Module.eval() changes: a dropout hands on its input; a batch norm whose statistics are averaged
// over the batches normalizes by the running averages instead, and the averages are not updated. A batch norm
// without averages keeps the statistics of its batch, as with track_running_stats=False.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/train/EvaluationForm.h"

#include "dialects/Train/ChannelNorm.h"

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

void ds::makeEvaluationForm(func::FuncOp function) {
  dropDropout(function);
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
