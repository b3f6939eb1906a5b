//===- PartitionTensors.cpp - each rank of axis tensor computes its part ------===//
//
// 1. Chooses which parameters are cut (ChooseCuts.h); their gradients and state are cut alike.
// 2. Goes over the ops of each function as the sweep (PartSweep.h) has decided: what an op takes otherwise than ranks
//    have it is summed or gathered in front of it, once for all readers, and the op runs on parts.
// 3. Sums of squares are of a rank's part, and ranks gather them for the norm.
// Cf. Megatron-LM (arXiv 1909.08053) for the layouts, GSPMD (arXiv 2105.04663) for the way.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/TrainStep.h"
#include "compiler/passes/tensor/ChooseCuts.h"
#include "compiler/passes/tensor/PartSweep.h"
#include "compiler/passes/tensor/Passes.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Dist/Mesh.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include "llvm/Support/MathExtras.h"

#include <utility>
#include <vector>

namespace ds {
#define GEN_PASS_DEF_PARTITIONTENSORS
#include "compiler/passes/tensor/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// Makes a function's ops work on parts.
class Rewriter {
public:
  Rewriter(dist::MeshOp mesh, int64_t ranks) : mesh_(mesh), ranks_(ranks) {}

  void rewrite(Operation *op, const PartDecision &decision) {
    ImplicitLocOpBuilder b(op->getLoc(), op);
    for (OpOperand &operand : op->getOpOperands())
      operand.set(converted(b, operand.get(), decision.operands[operand.getOperandNumber()]));
    SmallVector<int64_t> shape;
    for (auto [result, part] : llvm::zip(op->getResults(), decision.results)) {
      const RankedTensorType whole = cast<RankedTensorType>(result.getType());
      shape = partShape(whole.getShape(), part, ranks_);
      if (!part.isWhole())
        held_[result] = {part, whole};
      result.setType(whole.clone(shape));
    }
    if (auto slice = dyn_cast<train::SliceOp>(op); slice && decision.operands.front().isCut()) {
      SmallVector<int64_t> starts(slice.getStarts());
      starts[size_t(decision.operands.front().dim)] /= ranks_; // of runs, or 0
      slice.setStarts(starts);
    }
    if (llvm::any_of(decision.results, [](const Part &part) { return part.isCut(); }))
      for (const char *name : {"shape", "sizes"}) // of the result
        if (op->getAttr(name))
          op->setAttr(name, b.getDenseI64ArrayAttr(shape));
    if (!decision.whole.empty())
      op->setAttr(dist::placeAttribute, place(b, decision));
    if (auto sums = dyn_cast<train::BlockSumSquaresOp>(op); sums && decision.operands.front().isCut())
      gatherSums(sums);
  }

private:
  /// What a rank has of a value, whose type was `whole`.
  struct Held {
    Part part;
    RankedTensorType whole;
  };

  static DictionaryAttr place(Builder &b, const PartDecision &decision) {
    const SmallVector<int64_t> first(decision.whole.size());
    const auto byRank = dist::ByRankAttr::get(b.getContext(), first, b.getStringAttr(dist::tensorAxis), decision.steps);
    return b.getDictionaryAttr(
        {b.getNamedAttr("first", byRank), b.getNamedAttr("whole", b.getDenseI64ArrayAttr(decision.whole))});
  }

  Value converted(ImplicitLocOpBuilder &b, Value value, const Part &to) {
    const auto at = held_.find(value);
    if ((at == held_.end() ? Part::whole() : at->second.part) == to)
      return value;
    if (at != held_.end()) {
      const Held held = at->second;
      Value &whole = whole_[value];
      if (!whole)
        whole = held.part.isTerm() ? sum(b, value) : gather(b, value, held);
      value = whole;
    }
    if (to.isWhole())
      return value;
    return isa_and_present<train::ConstantOp>(value.getDefiningOp()) ? constant(b, value, to) : slice(b, value, to);
  }

  /// Elements laid flat: `outer` runs, each of the ranks' parts, of `inner` elements.
  struct Runs {
    int64_t outer, inner;
  };
  Runs runsOf(RankedTensorType whole, const Part &part) const {
    int64_t outer = part.runs;
    for (int64_t size : whole.getShape().take_front(size_t(part.dim)))
      outer *= size;
    return {outer, whole.getNumElements() / (outer * ranks_)};
  }

  static Value reshape(ImplicitLocOpBuilder &b, Value value, ArrayRef<int64_t> shape) {
    return train::ReshapeOp::create(b, value, b.getDenseI64ArrayAttr(shape));
  }

  /// The rank's part of what all ranks have.
  Value slice(ImplicitLocOpBuilder &b, Value value, const Part &part) {
    const auto type = cast<RankedTensorType>(value.getType());
    const auto [outer, inner] = runsOf(type, part);
    const auto none = b.getDenseI64ArrayAttr({0, 0, 0});
    auto own = train::SliceOp::create(b, reshape(b, value, {outer, ranks_, inner}), none,
                                      b.getDenseI64ArrayAttr({outer, 1, inner}), b.getDenseI64ArrayAttr({1, 1, 1}));
    const auto starts = dist::ByRankAttr::get(b.getContext(), {0, 0, 0}, b.getStringAttr(dist::tensorAxis), {0, 1, 0});
    own->setAttr(dist::placeAttribute, b.getDictionaryAttr(b.getNamedAttr("starts", starts)));
    return reshape(b, own, partShape(type.getShape(), part, ranks_));
  }

  /// Part of a constant whose elements are all the same is one of fewer elements.
  Value constant(ImplicitLocOpBuilder &b, Value value, const Part &part) {
    auto whole = cast<train::ConstantOp>(value.getDefiningOp());
    auto elements = dyn_cast<DenseElementsAttr>(whole.getValue());
    if (!elements || !elements.isSplat())
      return slice(b, value, part);
    const auto type = cast<RankedTensorType>(value.getType());
    return train::ConstantOp::create(b, elements.resizeSplat(type.clone(partShape(type.getShape(), part, ranks_))));
  }

  template <typename CollectiveOp> Value collective(ImplicitLocOpBuilder &b, Value input, Type result) {
    return CollectiveOp::create(b, TypeRange(result), input, FlatSymbolRefAttr::get(mesh_.getSymNameAttr()),
                                b.getStringAttr(dist::tensorAxis), ArrayAttr(), UnitAttr())
        .getResult(0);
  }

  Value sum(ImplicitLocOpBuilder &b, Value value) { return collective<dist::AllReduceOp>(b, value, value.getType()); }

  /// Parts one after another, of which those of one run are brought together.
  Value gather(ImplicitLocOpBuilder &b, Value value, const Held &held) {
    const auto [outer, inner] = runsOf(held.whole, held.part);
    Value all = collective<dist::AllGatherOp>(b, reshape(b, value, {1, outer, inner}),
                                              held.whole.clone({ranks_, outer, inner}));
    if (outer > 1)
      all = train::TransposeOp::create(b, all, b.getDenseI64ArrayAttr({1, 0, 2}));
    return reshape(b, all, held.whole.getShape());
  }

  /// Ranks have sums of squares of their parts, and the norm is of everybody's.
  void gatherSums(train::BlockSumSquaresOp sums) {
    const int64_t elements = cast<RankedTensorType>(sums.getInput().getType()).getNumElements();
    const int64_t own = llvm::divideCeil(elements, int64_t(sums.getBlock()));
    const auto type = cast<RankedTensorType>(sums.getType());
    sums.getResult().setType(type.clone({own}));
    sums->removeAttr(referenceAttribute); // no op of one rank has them
    ImplicitLocOpBuilder b(sums.getLoc(), sums->getContext());
    b.setInsertionPointAfter(sums);
    Value all = collective<dist::AllGatherOp>(b, sums, type.clone({own * ranks_}));
    sums.getResult().replaceAllUsesExcept(all, all.getDefiningOp());
  }

  dist::MeshOp mesh_;
  int64_t ranks_;
  llvm::DenseMap<Value, Held> held_;   // of those that are not whole; looked up
  llvm::DenseMap<Value, Value> whole_; // what was summed or gathered, by the part; looked up
};

struct PartitionTensors : ds::impl::PartitionTensorsBase<PartitionTensors> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    dist::MeshOp mesh = dist::requireMesh(module);
    if (!mesh)
      return signalPassFailure();
    const int64_t ranks = dist::axisSize(mesh, dist::tensorAxis);
    if (ranks == 1)
      return;
    const SymbolTable symbols(module);
    auto microbatch = symbols.lookup<func::FuncOp>("microbatch");
    if (!microbatch) {
      module.emitError("has no @microbatch; ds-differentiate makes it");
      return signalPassFailure();
    }
    PartSweep sweep(microbatch, symbols, ranks);
    const Cuts cuts = chooseCuts(module, sweep, ranks);
    if (cuts.empty()) {
      module.emitError() << "no parameter can be cut over the " << ranks
                         << " ranks of axis tensor: none has a dimension that leaves each at least two elements, and "
                            "along which cutting it saves anything";
      return signalPassFailure();
    }
    const auto partOf = [&](StringAttr name) {
      auto variable = symbols.lookup<train::VariableOp>(name);
      return cuts.lookup(variable && variable.getOf() ? variable.getOfAttr().getAttr() : name);
    };
    for (auto function : module.getOps<func::FuncOp>()) {
      PartSweep parts(function, symbols, ranks);
      std::vector<std::pair<Operation *, PartDecision>> decisions;
      parts.run(partOf, [&](Operation *op, const PartDecision &decision) { decisions.emplace_back(op, decision); });
      Rewriter rewriter(mesh, ranks);
      for (auto &[op, decision] : decisions)
        rewriter.rewrite(op, decision);
    }
    for (auto variable : module.getOps<train::VariableOp>())
      if (const Part part = partOf(variable.getSymNameAttr()); part.isCut())
        cut(variable, part, ranks);
    train::raiseNumerics(module, train::Numerics::Reassociated);
  }

  /// Ranks hold their parts of a variable.
  static void cut(train::VariableOp variable, const Part &part, int64_t ranks) {
    const RankedTensorType whole = variable.getTensorType();
    Builder b(variable.getContext());
    variable.setWholeAttr(b.getDenseI64ArrayAttr(whole.getShape()));
    variable.setTypeAttr(TypeAttr::get(whole.clone(partShape(whole.getShape(), part, ranks))));
    variable->setAttr(dist::shardingAttribute,
                      dist::ShardingAttr::getSharded(b.getStringAttr(dist::tensorAxis), part.dim, part.runs));
  }
};

} // namespace
