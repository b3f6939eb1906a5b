//===- FuseElementwise.cpp - run chains of elementwise ops as one loop ------===//
//
// One walk in program order. Each elementwise op joins the groups of its operands or starts a group. When op X joins
// groups, which then are one group G, X becomes G's last op, where the fused op will stand; so
//   1. G has room, X's result shape, X's pipeline stage, and X's side of train.loss_gradient;
//   2. every reader of a member of G that is not in G comes after X;
//   3. every operand of X is defined before X (true in SSA) and no operand of X depends on a member of G through an op
//      outside G: by 2 such an op would come after X.
// Rules 1 and 2 are checked; 3 follows.
// Greedy fusion of producers into consumers, as in XLA's loop fusion; `max-ops` and `max-operands` take the place of
// a cost model. Before it, a train.broadcast that its reader would do anyway is read from before.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/KernelSelection.h"
#include "compiler/analysis/Stages.h"
#include "compiler/analysis/TrainStep.h"
#include "compiler/passes/fusion/Passes.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace ds {
#define GEN_PASS_DEF_FUSEELEMENTWISE
#include "compiler/passes/fusion/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

struct Group {
  SmallVector<Operation *> ops; // in program order
};

/// A scalar or splat constant costs nothing inside a fused loop, if a program can hold it.
bool isSplatConstant(Value value) { return splatConstant(value).has_value(); }

class Grouping {
public:
  Grouping(Block &block, size_t maxOps, size_t maxOperands) : maxOps_(maxOps), maxOperands_(maxOperands) {
    int64_t position = 0, side = 0;
    for (Operation &op : block) {
      side += isa<train::LossGradientOp>(op);
      place_[&op] = {position++, side};
    }
    for (Operation &op : block)
      if (op.hasTrait<train::Elementwise>())
        assign(&op);
  }

  /// Groups of two ops and more.
  SmallVector<Group> take() {
    SmallVector<Group> result;
    for (Group &group : groups_)
      if (group.ops.size() > 1)
        result.push_back(std::move(group));
    return result;
  }

private:
  struct Place {
    int64_t position, side; // side 1: backward
  };

  static ArrayRef<int64_t> shapeOf(Operation *op) {
    return cast<RankedTensorType>(op->getResult(0).getType()).getShape();
  }

  /// `op` joins the groups of all its operands into one, as far as they let it.
  void assign(Operation *op) {
    SmallVector<Operation *> joined{op};
    SmallVector<size_t> taken;
    for (Value operand : op->getOperands()) {
      auto it = groupOf_.find(operand.getDefiningOp());
      if (it == groupOf_.end() || llvm::is_contained(taken, it->second))
        continue;
      SmallVector<Operation *> wider(joined);
      llvm::append_range(wider, groups_[it->second].ops);
      if (!mayStandAt(op, wider))
        continue;
      joined = std::move(wider);
      taken.push_back(it->second);
    }
    if (taken.empty()) {
      taken.push_back(groups_.size());
      groups_.emplace_back();
    }
    llvm::sort(joined, [&](Operation *a, Operation *b) { return place_[a].position < place_[b].position; });
    for (Operation *member : joined)
      groupOf_[member] = taken.front();
    for (size_t other : taken)
      groups_[other].ops.clear();
    groups_[taken.front()].ops = std::move(joined);
  }

  /// Whether `members`, of which `op` is the last, may become one fused op where `op` stands.
  bool mayStandAt(Operation *op, ArrayRef<Operation *> members) {
    const llvm::SmallPtrSet<Operation *, 16> inside(members.begin(), members.end());
    if (members.size() > maxOps_ || countOperands(members) > maxOperands_)
      return false;
    return llvm::all_of(members, [&](Operation *member) {
      return shapeOf(member) == shapeOf(op) && place_[member].side == place_[op].side &&
             stageOf(member) == stageOf(op) && llvm::all_of(member->getUsers(), [&](Operation *user) {
               return inside.contains(user) || place_[user].position > place_[op].position;
             });
    });
  }

  /// Inputs and results that the group would have.
  static size_t countOperands(ArrayRef<Operation *> group) {
    const llvm::SmallPtrSet<Operation *, 16> members(group.begin(), group.end());
    llvm::SmallSetVector<Value, 16> inputs;
    size_t results = 0;
    for (Operation *member : group) {
      for (Value operand : member->getOperands())
        if (!members.contains(operand.getDefiningOp()) && !isSplatConstant(operand))
          inputs.insert(operand);
      results += llvm::any_of(member->getUsers(), [&](Operation *user) { return !members.contains(user); });
    }
    return inputs.size() + results;
  }

  size_t maxOps_, maxOperands_;
  llvm::DenseMap<Operation *, Place> place_;
  llvm::DenseMap<Operation *, size_t> groupOf_;
  SmallVector<Group> groups_;
};

/// Replaces the ops of a group by one train.fused at the place of the last.
void fuse(const Group &group) {
  llvm::SmallSetVector<Operation *, 16> members(group.ops.begin(), group.ops.end());
  llvm::SmallSetVector<Value, 16> inputs;
  SmallVector<Value> results;
  SmallVector<int64_t> reference;
  for (Operation *op : members) {
    for (Value operand : op->getOperands())
      if (!members.contains(operand.getDefiningOp()) && !isSplatConstant(operand))
        inputs.insert(operand);
    if (llvm::any_of(op->getUsers(), [&](Operation *user) { return !members.contains(user); }))
      results.push_back(op->getResult(0));
    if (auto numbers = op->getAttrOfType<DenseI64ArrayAttr>(referenceAttribute))
      llvm::append_range(reference, numbers.asArrayRef());
  }
  if (results.empty()) { // nobody reads what the group computes
    for (Operation *op : llvm::reverse(group.ops))
      op->erase();
    return;
  }
  Operation *last = group.ops.back();
  OpBuilder builder(last);
  auto fused = train::FusedOp::create(builder, last->getLoc(), TypeRange(ValueRange(results)), inputs.getArrayRef());
  if (!reference.empty())
    fused->setAttr(referenceAttribute, builder.getDenseI64ArrayAttr(reference));
  if (Attribute stage = last->getAttr(pipelineStageAttribute))
    fused->setAttr(pipelineStageAttribute, stage);
  Block &body = fused.getBody().emplaceBlock();
  IRMapping mapping;
  for (Value input : inputs)
    mapping.map(input, body.addArgument(input.getType(), input.getLoc()));
  builder.setInsertionPointToStart(&body);
  for (Operation *op : members) {
    for (Value operand : op->getOperands())
      if (!mapping.contains(operand) && isSplatConstant(operand))
        builder.clone(*operand.getDefiningOp(), mapping)->removeAttr(referenceAttribute);
    Operation *member = builder.clone(*op, mapping);
    member->removeAttr(referenceAttribute);
    member->removeAttr(pipelineStageAttribute);
  }
  SmallVector<Value> yielded;
  for (Value result : results)
    yielded.push_back(mapping.lookup(result));
  train::YieldOp::create(builder, last->getLoc(), yielded);
  for (auto [result, replacement] : llvm::zip(results, fused.getOutputs()))
    result.replaceUsesWithIf(replacement, [&](OpOperand &use) { return !members.contains(use.getOwner()); });
  for (Operation *op : llvm::reverse(members.getArrayRef()))
    op->erase();
}

/// An elementwise op that broadcasts anyway reads the narrow operand of a train.broadcast.
void absorbBroadcasts(Block &block) {
  for (Operation &op : block) {
    if (!op.hasTrait<train::Elementwise>())
      continue;
    for (OpOperand &operand : op.getOpOperands()) {
      auto broadcast = operand.get().getDefiningOp<train::BroadcastOp>();
      if (!broadcast)
        continue;
      SmallVector<int64_t> rest;
      for (OpOperand &other : op.getOpOperands()) {
        Value seen = &other == &operand ? broadcast.getInput() : other.get();
        rest = *train::broadcastShapes(rest, cast<RankedTensorType>(seen.getType()).getShape());
      }
      if (ArrayRef<int64_t>(rest) == cast<RankedTensorType>(op.getResult(0).getType()).getShape())
        operand.set(broadcast.getInput());
    }
  }
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isa<train::BroadcastOp>(op) && op.use_empty())
      op.erase();
}

struct FuseElementwise : ds::impl::FuseElementwiseBase<FuseElementwise> {
  using FuseElementwiseBase::FuseElementwiseBase;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!function.getBody().hasOneBlock()) {
        function.emitError("must have one block; see ds-verify-train-form");
        return signalPassFailure();
      }
      Block &block = function.getBody().front();
      absorbBroadcasts(block);
      for (const Group &group : Grouping(block, maxOps, maxOperands).take())
        fuse(group);
      for (Operation &op : llvm::make_early_inc_range(block))
        if (isa<train::ConstantOp>(op) && op.use_empty())
          op.erase();
    }
  }
};

} // namespace
