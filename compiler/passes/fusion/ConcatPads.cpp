//===- ConcatPads.cpp - a sum of zero-padded parts is their concatenation ---===//
//
// Each chain of train.add, the last first, whose leaves are all train.pad with zeros along one dimension, and none
// of which anything else reads:
//   1. Sort the parts by where they begin.
//   2. If each begins where the one before ends, and the last ends with the sum, the chain becomes one
//      train.concat.
// Reverse mode makes such sums: the gradient of a slice is a pad, and contributions to one value are added.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/fusion/Passes.h"
#include "dialects/Train/Train.h"

namespace ds {
#define GEN_PASS_DEF_CONCATPADS
#include "compiler/passes/fusion/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// The one dimension that `pad` adds zeros to, without spacing elements out.
std::optional<unsigned> paddedAxis(train::PadOp pad) {
  if (!pad.getValue().isPosZero() || llvm::any_of(pad.getInterior(), [](int64_t n) { return n != 0; }))
    return {};
  std::optional<unsigned> axis;
  for (auto [dim, low, high] : llvm::enumerate(pad.getLow(), pad.getHigh())) {
    if (low == 0 && high == 0)
      continue;
    if (axis)
      return {};
    axis = dim;
  }
  return axis;
}

struct ConcatPads : ds::impl::ConcatPadsBase<ConcatPads> {
  void runOnOperation() override {
    SmallVector<train::AddOp> adds;
    getOperation().walk([&](train::AddOp op) { adds.push_back(op); });
    // The last sum of a chain first: it takes the whole chain, or none of it.
    for (train::AddOp add : llvm::reverse(adds))
      if (!dropped_.contains(add))
        tryConcat(add);
    for (Operation *op : dropped_)
      op->erase();
    dropped_.clear();
  }

private:
  /// The padded parts that `value` is the sum of; false if something else is among them.
  bool collect(Value value, SmallVectorImpl<train::PadOp> &parts, SmallVectorImpl<Operation *> &sums) {
    if (!value.hasOneUse())
      return false;
    if (auto pad = value.getDefiningOp<train::PadOp>()) {
      parts.push_back(pad);
      return true;
    }
    auto add = value.getDefiningOp<train::AddOp>();
    return add && collectOperands(add, parts, sums);
  }
  bool collectOperands(train::AddOp add, SmallVectorImpl<train::PadOp> &parts, SmallVectorImpl<Operation *> &sums) {
    sums.push_back(add);
    const auto whole = [&](Value operand) { return operand.getType() == add.getType(); };
    return whole(add.getLhs()) && whole(add.getRhs()) && collect(add.getLhs(), parts, sums) &&
           collect(add.getRhs(), parts, sums);
  }

  void tryConcat(train::AddOp add) {
    SmallVector<train::PadOp> parts;
    SmallVector<Operation *> sums;
    if (!collectOperands(add, parts, sums))
      return;
    const std::optional<unsigned> axis = paddedAxis(parts.front());
    if (!axis || llvm::any_of(parts, [&](train::PadOp pad) { return paddedAxis(pad) != axis; }))
      return;
    llvm::sort(parts, [&](train::PadOp a, train::PadOp b) { return a.getLow()[*axis] < b.getLow()[*axis]; });
    int64_t end = 0;
    SmallVector<Value> inputs;
    for (train::PadOp pad : parts) {
      if (pad.getLow()[*axis] != end)
        return;
      inputs.push_back(pad.getInput());
      end += cast<RankedTensorType>(pad.getInput().getType()).getDimSize(*axis);
    }
    if (end != cast<RankedTensorType>(add.getType()).getDimSize(*axis))
      return;
    OpBuilder builder(add);
    auto concat = train::ConcatOp::create(builder, add.getLoc(), add.getType(), inputs, *axis);
    add.replaceAllUsesWith(concat.getResult());
    dropped_.insert_range(sums);
    dropped_.insert_range(parts);
  }

  llvm::SetVector<Operation *> dropped_; ///< users before what they use
};

} // namespace
