//===- ShardOptimizer.cpp - each rank updates the slices it owns --------------===//
//
// 1. The updates of all members of a bucket, which must be alike, become one update of this rank's slice.
// 2. Where every rank needs the whole parameters (stages 1 and 2), an all_gather follows.
// 3. So does a gradient that an update of the next step reads (ds-delay-updates).
// 4. Sums of squares for the gradient norm are taken over this rank's blocks and gathered; the norm views each
//    parameter's where they lie and adds them in the same order, so it has the same bits.
// train.lamb, whose step is of a whole parameter, is refused.
// This is the sharded optimizer of ZeRO stage 1 (Rajbhandari et al., arXiv 1910.02054; Xu et al., arXiv 2004.13336).
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/BucketIndex.h"
#include "compiler/analysis/Stages.h"
#include "compiler/analysis/TrainStep.h"
#include "compiler/passes/zero/Passes.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

namespace ds {
#define GEN_PASS_DEF_SHARDOPTIMIZER
#include "compiler/passes/zero/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

struct ShardOptimizer : ds::impl::ShardOptimizerBase<ShardOptimizer> {
  void runOnOperation() override {
    const SmallVector<dist::FragmentOp> updates = fragmentsOf(getOperation(), dist::Phase::Update);
    if (updates.empty()) {
      getOperation().emitError("has no fragment of phase update; ds-outline-fragments makes it");
      return signalPassFailure();
    }
    const BucketIndex buckets(getOperation());
    for (dist::FragmentOp update : updates)
      if (failed(shard(update, buckets)))
        return signalPassFailure();
  }

private:
  LogicalResult shard(dist::FragmentOp update, const BucketIndex &buckets) {
    llvm::MapVector<Operation *, SmallVector<Operation *>> updates; // optimizer ops by bucket of their parameters
    for (Operation &op : update.getBody().front())
      if (const std::optional<StringAttr> parameter = updatedParameter(&op))
        if (dist::BucketOp bucket = buckets.bucketOf(*parameter))
          updates[bucket].push_back(&op);
    for (auto &[op, members] : updates)
      if (failed(merge(cast<dist::BucketOp>(op), members, buckets)))
        return failure();
    shardPending(update, buckets);
    shardNorm(update, buckets);
    return success();
  }

  /// Of a bucket's gradients that become state (ds-delay-updates) this rank's slice does, at once.
  void shardPending(dist::FragmentOp update, const BucketIndex &buckets) {
    const auto gradientsIn = [&](train::StoreOp store) {
      auto read = store.getValue().getDefiningOp<train::ReadOp>();
      return read ? buckets.bucketOf(read.getVariableAttr().getAttr()) : dist::BucketOp();
    };
    llvm::MapVector<Operation *, SmallVector<train::StoreOp>> stores; // by bucket that they write
    for (auto store : update.getOps<train::StoreOp>())
      if (dist::BucketOp pending = buckets.bucketOf(store.getVariableAttr().getAttr()); pending && gradientsIn(store))
        stores[pending].push_back(store);
    for (auto &[op, members] : stores) {
      auto pending = cast<dist::BucketOp>(op);
      dist::BucketOp gradients = gradientsIn(members.front());
      ImplicitLocOpBuilder b(pending.getLoc(), members.back());
      SmallVector<int64_t> reference;
      for (train::StoreOp store : members)
        if (auto numbers = store->getAttrOfType<DenseI64ArrayAttr>(referenceAttribute))
          llvm::append_range(reference, numbers.asArrayRef());
      Value own = train::ReadOp::create(b, gradients.getSliceType(), gradients.getSymNameAttr());
      auto whole = train::StoreOp::create(b, pending.getSymName(), own);
      if (!reference.empty())
        whole->setAttr(referenceAttribute, b.getDenseI64ArrayAttr(reference));
      for (train::StoreOp store : members) {
        Operation *source = store.getValue().getDefiningOp();
        store.erase();
        if (source->use_empty())
          source->erase();
      }
    }
  }

  /// `op` with every variable replaced by its bucket, or a failure if one lies in none.
  FailureOr<NamedAttrList> onBuckets(Operation *op, const BucketIndex &buckets) {
    NamedAttrList attributes;
    for (NamedAttribute attribute : op->getAttrDictionary()) {
      auto name = dyn_cast<FlatSymbolRefAttr>(attribute.getValue());
      if (!name) {
        attributes.push_back(attribute);
        continue;
      }
      dist::BucketOp bucket = buckets.bucketOf(name.getAttr());
      if (!bucket)
        return dist::withDeclaration(op->emitOpError() << name << " lies in no bucket; ds-lay-out-buckets makes one",
                                     getOperation().lookupSymbol(name));
      attributes.set(attribute.getName(), FlatSymbolRefAttr::get(bucket.getSymNameAttr()));
    }
    attributes.erase(referenceAttribute);
    return attributes;
  }

  /// One update of this rank's slice for those of all members; what every rank holds whole is then made whole again.
  LogicalResult merge(dist::BucketOp bucket, ArrayRef<Operation *> members, const BucketIndex &buckets) {
    NamedAttrList merged;
    SmallVector<int64_t> reference;
    for (Operation *op : members) {
      if (isa<train::LambOp>(op))
        return op->emitOpError() << "needs the norm of a whole parameter, and ranks update slices of bucket @"
                                 << bucket.getSymName() << "; ZeRO stage 0 leaves parameters whole";
      FailureOr<NamedAttrList> own = onBuckets(op, buckets);
      if (failed(own))
        return failure();
      if (op == members.front())
        merged = *own;
      if (own->getDictionary(&getContext()) != merged.getDictionary(&getContext()) ||
          op->getName() != members.front()->getName() || op->getOperands() != members.front()->getOperands()) {
        InFlightDiagnostic error = op->emitOpError() << "updates its parameter otherwise than another of bucket @"
                                                     << bucket.getSymName() << " is updated";
        error.attachNote(members.front()->getLoc()) << "the other";
        return error;
      }
      if (auto numbers = op->getAttrOfType<DenseI64ArrayAttr>(referenceAttribute))
        llvm::append_range(reference, numbers.asArrayRef());
    }
    ImplicitLocOpBuilder b(bucket.getLoc(), members.back());
    if (!reference.empty())
      merged.set(referenceAttribute, b.getDenseI64ArrayAttr(reference));
    static_cast<OpBuilder &>(b).create(OperationState(bucket.getLoc(), members.front()->getName().getStringRef(),
                                                      members.front()->getOperands(), TypeRange(), merged));
    if (!bucket.isSharded()) {
      Value own = train::ReadOp::create(b, bucket.getSliceType(), bucket.getSymNameAttr());
      dist::AllGatherOp::create(b, TypeRange(), own, bucket.getMeshAttr(), bucket.getAxisAttr(),
                                b.getArrayAttr({FlatSymbolRefAttr::get(bucket.getSymNameAttr())}), UnitAttr());
    }
    for (Operation *op : members)
      op->erase();
    return success();
  }

  /// Sums of squares of this rank's blocks, or of parts of them where a slice ends within one, then of everybody's; the
  /// norm adds them in the order in which it added those of whole gradients, so it has the same bits.
  void shardNorm(dist::FragmentOp update, const BucketIndex &buckets) {
    llvm::DenseMap<Operation *, Value> partials; // by bucket: of all blocks; looked up
    for (auto sum : llvm::make_early_inc_range(update.getOps<train::BlockSumSquaresOp>())) {
      auto read = sum.getInput().getDefiningOp<train::ReadOp>();
      const Membership member = read ? buckets.find(read.getVariableAttr().getAttr()) : Membership();
      if (!member.bucket || !isShared(member.bucket, buckets))
        continue;
      ImplicitLocOpBuilder b(sum.getLoc(), sum);
      Value &all = partials[member.bucket];
      if (!all)
        all = sumBlocks(b, member.bucket);
      dist::BucketOp bucket = member.bucket;
      const int64_t part = bucket.getPart(), parts = dist::BucketOp::block / part;
      const auto count = cast<RankedTensorType>(sum.getType()).getNumElements() * parts;
      auto own = dist::ViewOp::create(b, RankedTensorType::get({count}, b.getF64Type()), all, member.offset / part);
      if (Attribute reference = sum->getAttr(referenceAttribute))
        own->setAttr(referenceAttribute, reference);
      for (OpOperand &use : llvm::make_early_inc_range(sum.getResult().getUses()))
        useParts(use, own, part);
      sum.erase();
      if (read.use_empty())
        read.erase();
    }
  }

  /// A norm that added sums of blocks adds sums of parts of them first, also where those of all parts of a tensor are
  /// gathered for it.
  static void useParts(OpOperand &use, Value parts, int64_t part) {
    const auto countOf = [](Value value) { return cast<RankedTensorType>(value.getType()).getNumElements(); };
    const int64_t before = countOf(use.get());
    use.set(parts);
    auto gather = dyn_cast<dist::AllGatherOp>(use.getOwner());
    if (!gather)
      return addParts(use, part);
    Value all = gather.getResult(use.getOperandNumber());
    all.setType(RankedTensorType::get({countOf(all) / before * countOf(parts)}, getElementTypeOrSelf(all)));
    for (OpOperand &of : all.getUses())
      addParts(of, part);
  }

  static void addParts(OpOperand &use, int64_t part) {
    auto norm = cast<train::GlobalNormOp>(use.getOwner());
    SmallVector<int64_t> blocks(norm.getBlocks());
    blocks.resize(norm.getPartials().size(), dist::BucketOp::block);
    blocks[use.getOperandNumber()] = part;
    const bool whole = llvm::all_of(blocks, [](int64_t block) { return block == dist::BucketOp::block; });
    norm.setBlocks(whole ? ArrayRef<int64_t>() : blocks);
  }

  static Value sumBlocks(ImplicitLocOpBuilder &b, dist::BucketOp bucket) {
    Value own = train::ReadOp::create(b, bucket.getSliceType(), bucket.getSymNameAttr());
    Value sums = train::BlockSumSquaresOp::create(b, own, bucket.getPart());
    const int64_t blocks = bucket.getWholeType().getNumElements() / bucket.getPart();
    auto type = RankedTensorType::get({blocks}, b.getF64Type());
    return dist::AllGatherOp::create(b, TypeRange(type), sums, bucket.getMeshAttr(), bucket.getAxisAttr(), ArrayAttr(),
                                     UnitAttr())
        .getResult(0);
  }

  /// Whether a rank needs its slice of these gradients alone: their parameters lie in a bucket.
  static bool isShared(dist::BucketOp gradients, const BucketIndex &buckets) {
    return bool(buckets.bucketOf(buckets.parameterOf(gradients)));
  }
};

} // namespace
