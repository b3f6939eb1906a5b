//===- FuseResidualSums.cpp - let a norm add the residual in front of it ------===//
//
// A block x = a + b, y = norm(x) goes on with both x and y. Where one loop makes x by nothing but that sum,
// train.layer_norm_of_sum or rms_norm_of_sum makes both. In 16 bits the stream of residuals a is float32, what is added
// has 16 bits, and the norm takes the sum rounded.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/Stages.h"
#include "compiler/analysis/TrainStep.h"
#include "compiler/passes/fusion/IsThereAt.h"
#include "compiler/passes/fusion/Passes.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ds {
#define GEN_PASS_DEF_FUSERESIDUALSUMS
#include "compiler/passes/fusion/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// What makes the input of a norm, where it is a sum and nothing else.
struct Sum {
  Operation *op = nullptr; ///< null: it is not
  Value input, residual;   ///< the terms; in 16 bits, the one that has them first
  Value wide;              ///< the sum before it is rounded to 16 bits, if it is

  explicit Sum(Value made) {
    if (auto add = made.getDefiningOp<train::AddOp>())
      readAdd(add, made.getType());
    else if (auto fused = made.getDefiningOp<train::FusedOp>())
      readLoop(fused, made);
  }

private:
  void readAdd(train::AddOp add, Type type) {
    if (train::isNarrowFloat(getElementTypeOrSelf(type)) || add.getLhs() == add.getRhs() ||
        add.getLhs().getType() != type || add.getRhs().getType() != type)
      return;
    op = add;
    input = add.getLhs();
    residual = add.getRhs();
  }

  /// A loop of four: one term is cast to float32 and the other has it, they are added, and cast back.
  void readLoop(train::FusedOp fused, Value made) {
    Block &body = fused.getBody().front();
    auto casts = llvm::to_vector(body.getOps<train::CastOp>());
    auto adds = llvm::to_vector(body.getOps<train::AddOp>());
    const unsigned rounded = cast<OpResult>(made).getResultNumber();
    if (body.getOperations().size() != 4 || casts.size() != 2 || adds.size() != 1 || fused->getNumResults() != 2)
      return;
    auto from = casts.front(), to = casts.back();
    auto add = adds.front();
    Operation *yield = body.getTerminator();
    const Value other = add.getLhs() == from.getResult() ? add.getRhs() : add.getLhs();
    const auto narrow = dyn_cast<BlockArgument>(from.getInput()), second = dyn_cast<BlockArgument>(other);
    if (!narrow || !second || !llvm::is_contained(add->getOperands(), from.getResult()) ||
        to.getInput() != add.getResult() || yield->getOperand(rounded) != to.getResult() ||
        yield->getOperand(1 - rounded) != add.getResult())
      return;
    input = fused->getOperand(narrow.getArgNumber());
    residual = fused->getOperand(second.getArgNumber());
    wide = fused->getResult(1 - rounded);
    if (input.getType() == made.getType() && residual.getType() == wide.getType() &&
        train::isNarrowFloat(getElementTypeOrSelf(made.getType())) && getElementTypeOrSelf(wide.getType()).isF32())
      op = fused;
  }
};

struct FuseResidualSums : ds::impl::FuseResidualSumsBase<FuseResidualSums> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      for (Block &block : function.getBody()) {
        sides_.clear();
        int64_t side = 0;
        for (Operation &op : block) {
          side += isa<train::LossGradientOp>(op);
          sides_[&op] = side;
        }
        for (Operation &op : llvm::make_early_inc_range(block))
          if (auto layer = dyn_cast<train::LayerNormOp>(op))
            fuse<train::LayerNormOfSumOp>(layer, layer.getScale(), layer.getShift());
          else if (auto rms = dyn_cast<train::RmsNormOp>(op))
            fuse<train::RmsNormOfSumOp>(rms, rms.getScale());
      }
  }

private:
  /// `parameters` are the norm's operands behind its input.
  template <typename OfSum, typename Norm, typename... Values> void fuse(Norm norm, Values... parameters) {
    const Sum sum(norm.getInput());
    if (!sum.op || sum.op->getBlock() != norm->getBlock() || sides_.lookup(sum.op) != sides_.lookup(norm) ||
        stageOf(sum.op) != stageOf(norm))
      return;
    Operation *place = norm;
    if (llvm::any_of(sum.op->getUsers(), [&](Operation *user) { return user->isBeforeInBlock(norm); }))
      place = sum.op;
    if (!(isThereAt(parameters, place) && ...))
      return;
    OpBuilder builder(place);
    auto both = OfSum::create(builder, norm.getLoc(), sum.input, parameters..., sum.residual, norm.getEpsilonAttr());
    SmallVector<int64_t> reference; // the norm first
    for (Operation *op : {norm.getOperation(), sum.op})
      if (auto numbers = op->template getAttrOfType<DenseI64ArrayAttr>(referenceAttribute))
        llvm::append_range(reference, numbers.asArrayRef());
    if (!reference.empty())
      both->setAttr(referenceAttribute, builder.getDenseI64ArrayAttr(reference));
    if (Attribute stage = norm->getAttr(pipelineStageAttribute))
      both->setAttr(pipelineStageAttribute, stage);
    sides_[both] = sides_.lookup(norm);
    norm->replaceAllUsesWith(both->getResults().take_front(norm->getNumResults()));
    Value made = norm.getInput(), wide = sum.wide;
    made.replaceAllUsesWith(both->getResults().back());
    if (wide)
      wide.replaceAllUsesWith(both.getSum());
    norm.erase();
    sum.op->erase();
  }

  llvm::DenseMap<Operation *, int64_t> sides_; ///< 1: backward
};

} // namespace
