//===- InsertReductions.cpp - sum gradients and losses over the ranks ----------===//
//
// 1. Sharded gradients (laid out by ZeRO stages 2 and 3): where a fragment has added to the last member of a bucket,
//    all additions become one pack and one reduce_scatter onto this rank's slice, every micro-batch.
// 2. Replicated gradients (stages 0 and 1): one collective a bucket at the head of the update, an all_reduce or,
//    where each rank updates its slice alone, a reduce_scatter.
// 3. Losses: an all_reduce each micro-batch, so that they too are summed in one order.
// Sums over ranks go in rank order, so global micro-batch k * d + r is the k * d + r-th term, as it would be on one
// rank. Cf. ZeRO (Rajbhandari et al., arXiv 1910.02054), section 5.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/BucketIndex.h"
#include "compiler/analysis/Stages.h"
#include "compiler/analysis/TrainStep.h"
#include "compiler/passes/zero/Passes.h"
#include "dialects/Dist/Mesh.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

#include "llvm/ADT/MapVector.h"

namespace ds {
#define GEN_PASS_DEF_INSERTREDUCTIONS
#include "compiler/passes/zero/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

struct InsertReductions : ds::impl::InsertReductionsBase<InsertReductions> {
  using InsertReductionsBase::InsertReductionsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    dist::MeshOp mesh = dist::requireMesh(module);
    const SmallVector<dist::FragmentOp> updates = fragmentsOf(module, dist::Phase::Update);
    if (mesh && updates.empty())
      module.emitError("has no fragment of phase update; ds-outline-fragments makes it");
    if (!mesh || updates.empty())
      return signalPassFailure();
    mesh_ = FlatSymbolRefAttr::get(mesh);
    ranks_ = dist::axisSize(mesh, dist::dataAxis);
    if (ranks_ == 1)
      return;
    const BucketIndex buckets(module);
    for (auto fragment : module.getOps<dist::FragmentOp>()) {
      reduceMicrobatch(fragment, buckets);
      reduceMetrics(fragment, symbols);
    }
    const RoleUses uses(module);
    for (auto [role, update] : llvm::enumerate(updates))
      reduceStep(update, buckets, symbols, [&, role = role](StringAttr gradients) {
        return updates.size() == 1 || llvm::is_contained(uses.addersOf(gradients), int64_t(role));
      });
  }

private:
  /// Gradients of which a rank keeps a slice: every micro-batch is summed over the ranks, as soon as the last member's
  /// is complete.
  void reduceMicrobatch(dist::FragmentOp fragment, const BucketIndex &buckets) {
    llvm::MapVector<Operation *, SmallVector<train::AccumulateOp>> contributions; // by bucket
    for (auto op : fragment.getOps<train::AccumulateOp>())
      if (buckets.isSharded(op.getVariableAttr().getAttr()))
        contributions[buckets.bucketOf(op.getVariableAttr().getAttr())].push_back(op);
    for (auto &[op, accumulations] : contributions) {
      auto bucket = cast<dist::BucketOp>(op);
      train::AccumulateOp last = accumulations.back();
      ImplicitLocOpBuilder b(bucket.getLoc(), last);
      llvm::sort(accumulations, [&](train::AccumulateOp x, train::AccumulateOp y) {
        return offsetOf(x, buckets) < offsetOf(y, buckets);
      });
      SmallVector<Value> inputs;
      SmallVector<int64_t> offsets, reference;
      for (train::AccumulateOp accumulate : accumulations) {
        inputs.push_back(accumulate.getValue());
        offsets.push_back(offsetOf(accumulate, buckets));
        if (auto numbers = accumulate->getAttrOfType<DenseI64ArrayAttr>(referenceAttribute))
          llvm::append_range(reference, numbers.asArrayRef());
      }
      Value flat = dist::PackOp::create(b, bucket.getWholeType(), inputs, offsets);
      Operation *sum = dist::ReduceScatterOp::create(b, TypeRange(), flat, mesh_, b.getStringAttr(dist::dataAxis),
                                                     into(bucket.getSymNameAttr()), b.getUnitAttr());
      if (!reference.empty())
        sum->setAttr(referenceAttribute, b.getDenseI64ArrayAttr(reference));
      for (train::AccumulateOp accumulate : accumulations)
        accumulate.erase();
    }
  }

  static int64_t offsetOf(train::AccumulateOp op, const BucketIndex &buckets) {
    return buckets.find(op.getVariableAttr().getAttr()).offset;
  }

  /// Gradients that are whole on every rank, and to which this role adds: summed once, before the update reads them.
  /// Where the optimizer's state is shared out, each rank needs its slice alone.
  void reduceStep(dist::FragmentOp update, const BucketIndex &buckets, const SymbolTable &symbols,
                  llvm::function_ref<bool(StringAttr gradients)> isAddedTo) {
    OpBuilder builder(&getContext());
    builder.setInsertionPointToStart(&update.getBody().front());
    for (auto bucket : getOperation().getOps<dist::BucketOp>()) {
      const StringAttr parameter = buckets.parameterOf(bucket);
      if (bucket.isSharded() || !isGradient(bucket, symbols) || !isAddedTo(bucket.getSymNameAttr()))
        continue;
      if (microbatches > 1) // one rank would add up the micro-batches of all ranks one by one
        train::raiseNumerics(getOperation(), train::Numerics::Reassociated);
      Value whole = dist::ReadWholeOp::create(builder, bucket.getLoc(), bucket.getType(), bucket.getSymNameAttr());
      if (buckets.bucketOf(parameter))
        dist::ReduceScatterOp::create(builder, bucket.getLoc(), TypeRange(), whole, mesh_,
                                      builder.getStringAttr(dist::dataAxis), into(bucket.getSymNameAttr()), UnitAttr());
      else
        dist::AllReduceOp::create(builder, bucket.getLoc(), TypeRange(), whole, mesh_,
                                  builder.getStringAttr(dist::dataAxis), into(bucket.getSymNameAttr()), UnitAttr());
    }
  }

  static bool isGradient(dist::BucketOp bucket, const SymbolTable &symbols) {
    auto first = symbols.lookup<train::VariableOp>(cast<FlatSymbolRefAttr>(bucket.getMembers()[0]).getAttr());
    return first && first.getKind() == train::VariableKind::Gradient;
  }

  /// A loss is summed micro-batch by micro-batch, so that its sum has one order too. Evaluation has one micro-batch a
  /// rank; its metric is their mean.
  void reduceMetrics(dist::FragmentOp fragment, const SymbolTable &symbols) {
    for (auto op : llvm::make_early_inc_range(fragment.getOps<train::AccumulateOp>())) {
      auto variable = symbols.lookup<train::VariableOp>(op.getVariable());
      if (variable.getKind() != train::VariableKind::Metric)
        continue;
      ImplicitLocOpBuilder b(op.getLoc(), op);
      auto name = op.getVariableAttr();
      Operation *sum = dist::AllReduceOp::create(b, TypeRange(), op.getValue(), mesh_, b.getStringAttr(dist::dataAxis),
                                                 into(name.getAttr()), b.getUnitAttr());
      if (Attribute reference = op->getAttr(referenceAttribute))
        sum->setAttr(referenceAttribute, reference);
      if (fragment.getPhase() == dist::Phase::Evaluate) {
        RankedTensorType type = variable.getTensorType();
        Value total = train::ReadOp::create(b, type, name);
        auto scalar = RankedTensorType::get({}, type.getElementType());
        Value count = train::ConstantOp::create(
            b, scalar, DenseElementsAttr::get(scalar, b.getFloatAttr(type.getElementType(), double(ranks_))));
        Value mean = train::DivOp::create(b, total, count);
        train::StoreOp::create(b, name, mean);
      }
      op.erase();
    }
  }

  ArrayAttr into(StringAttr name) { return ArrayAttr::get(&getContext(), {FlatSymbolRefAttr::get(name)}); }

  FlatSymbolRefAttr mesh_;
  int64_t ranks_ = 1;
};

} // namespace
