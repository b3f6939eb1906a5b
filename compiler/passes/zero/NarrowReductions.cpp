//===- NarrowReductions.cpp - sum gradients over the ranks in 16 bits ----------===//
//
// 1. Every reduction of a bucket of gradients gets its input cast, and its sum as a result of the smaller type.
// 2. That is cast back and added to the bucket, or stored there, where the bucket is used next.
// Half the bytes are sent. Each rank's part of a micro-batch is rounded, and their sum is: the plan is lossy. Sums over
// micro-batches stay as they were. Cf. communication_data_type of DeepSpeed, reduce_dtype of FSDP's MixedPrecision.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/CollectiveState.h"
#include "compiler/analysis/TrainStep.h"
#include "compiler/passes/zero/Passes.h"
#include "dialects/Dist/Mesh.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace ds {
#define GEN_PASS_DEF_NARROWREDUCTIONS
#include "compiler/passes/zero/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

struct NarrowReductions : ds::impl::NarrowReductionsBase<NarrowReductions> {
  using NarrowReductionsBase::NarrowReductionsBase;

  void runOnOperation() override {
    low_ = type == "bf16"  ? Type(BFloat16Type::get(&getContext()))
           : type == "f16" ? Type(Float16Type::get(&getContext()))
                           : Type();
    if (!low_) {
      getOperation().emitError() << "type is \"" << type << "\"; it must be bf16 or f16";
      return signalPassFailure();
    }
    const BucketIndex buckets(getOperation());
    for (auto fragment : getOperation().getOps<dist::FragmentOp>())
      for (Operation &op : llvm::make_early_inc_range(fragment.getBody().front()))
        if (isa<dist::ReduceScatterOp, dist::AllReduceOp>(op) && isOfGradients(cast<dist::CollectiveOpInterface>(op)))
          narrow(cast<dist::CollectiveOpInterface>(op), buckets);
  }

private:
  /// Whether all that it writes are buckets, of floats that can be narrower. Losses are summed as they are.
  bool isOfGradients(dist::CollectiveOpInterface op) {
    return op.getIntoAttr() && llvm::all_of(op.getIntoAttr().getAsRange<FlatSymbolRefAttr>(), [&](auto name) {
             auto bucket = getOperation().lookupSymbol<dist::BucketOp>(name);
             return bucket && bucket.getWholeType().getElementTypeBitWidth() > low_.getIntOrFloatBitWidth();
           });
  }

  void narrow(dist::CollectiveOpInterface op, const BucketIndex &buckets) {
    const CollectiveState state(op, buckets);
    Operation *next = op->getNextNode();
    while (next && !state.conflictWith(next))
      next = next->getNextNode();
    OperationState narrowed(op.getLoc(), op->getName());
    ImplicitLocOpBuilder b(op.getLoc(), op);
    SmallVector<Type> results;
    for (auto [input, name] : llvm::zip(op.getInputs(), op.getIntoAttr().getAsRange<FlatSymbolRefAttr>())) {
      auto bucket = getOperation().lookupSymbol<dist::BucketOp>(name);
      const bool scatters = op.getKind() == dist::CollectiveKind::ReduceScatter;
      results.push_back((scatters ? bucket.getSliceType() : bucket.getWholeType()).clone(low_));
      narrowed.addOperands(converted(b, input, low_));
    }
    NamedAttrList attributes(op->getAttrDictionary());
    attributes.erase("into");
    attributes.erase("accumulate");
    narrowed.addAttributes(attributes);
    narrowed.addTypes(results);
    Operation *sum = b.create(narrowed);
    if (next)
      b.setInsertionPoint(next);
    else
      b.setInsertionPointToEnd(op->getBlock());
    for (auto [result, name] : llvm::zip(sum->getResults(), op.getIntoAttr().getAsRange<FlatSymbolRefAttr>()))
      put(b, result, getOperation().lookupSymbol<dist::BucketOp>(name), op.getAccumulate());
    op->erase();
    train::raiseNumerics(getOperation(), train::Numerics::Lossy);
  }

  static Value converted(ImplicitLocOpBuilder &b, Value tensor, Type element) {
    return train::CastOp::create(b, cast<RankedTensorType>(tensor.getType()).clone(element), tensor,
                                 TypeAttr::get(element));
  }

  /// A slice goes where the bucket's lies; a whole bucket is put there member by member.
  static void put(ImplicitLocOpBuilder &b, Value sum, dist::BucketOp bucket, bool accumulate) {
    Value wide = converted(b, sum, bucket.getWholeType().getElementType());
    if (accumulate) {
      train::AccumulateOp::create(b, bucket.getSymName(), wide);
    } else if (wide.getType() == bucket.getSliceType()) {
      train::StoreOp::create(b, bucket.getSymName(), wide);
    } else {
      for (auto [member, offset] :
           llvm::zip(bucket.getMembers().getAsRange<FlatSymbolRefAttr>(), bucket.getOffsets())) {
        auto variable = bucket->getParentOfType<ModuleOp>().lookupSymbol<train::VariableOp>(member);
        Value own = dist::ViewOp::create(b, variable.getTensorType(), wide, offset);
        train::StoreOp::create(b, variable.getSymName(), own);
      }
    }
  }

  Type low_;
};

} // namespace
