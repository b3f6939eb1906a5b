//===- PlanBuckets.cpp - which parameters share a bucket ----------------------===//
//
// 1. Parameters in the reverse order of their last gradients, which is about that of their first use.
// 2. Each joins the open bucket of its element type, ZeRO stage, size class and pipeline stages, if it has room,
//    else opens the next one. Those that are updated otherwise (parameter groups) join another, and from stage 1 on
//    those that are only used in 16 bits, which ds-narrow-gathers gathers so.
// 3. Under stage 3, small parameters are handled as under stage 2, unless padding would cost more than that saves.
// 4. With for-launches, on one rank, nothing is shared out: one launch updates a bucket's parameters. Another rounds
//    those that are only used in 16 bits, as ds-narrow-gathers does among several ranks.
// Buckets in the order of the backward are those of DistributedDataParallel (Li et al., VLDB 2020); the stages, and
// the threshold for small parameters, those of ZeRO in DeepSpeed (Rajbhandari et al., arXiv 1910.02054).
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/BucketIndex.h"
#include "compiler/analysis/Gradients.h"
#include "compiler/analysis/NarrowUses.h"
#include "compiler/analysis/Stages.h"
#include "compiler/analysis/TrainStep.h"
#include "compiler/passes/zero/Passes.h"
#include "dialects/Dist/Mesh.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/MathExtras.h"

namespace ds {
#define GEN_PASS_DEF_PLANBUCKETS
#include "compiler/passes/zero/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

struct PlanBuckets : ds::impl::PlanBucketsBase<PlanBuckets> {
  using PlanBucketsBase::PlanBucketsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (stage < 0 || stage > 3 || bucketElements < 1 || persistenceThreshold < 0 || modelPersistenceThreshold < 0) {
      module.emitError() << "stage is " << stage.getValue() << ", bucket-elements " << bucketElements.getValue()
                         << ", the persistence thresholds " << persistenceThreshold.getValue() << " and "
                         << modelPersistenceThreshold.getValue()
                         << "; they must be 0 to 3, at least 1, and not negative";
      return signalPassFailure();
    }
    mesh_ = dist::requireMesh(module);
    if (!mesh_)
      return signalPassFailure();
    if (const int64_t ranks = dist::axisSize(mesh_, dist::dataAxis); forLaunches && ranks > 1) {
      module.emitError() << "for-launches is for one rank of axis data, and there are " << ranks
                         << ": these share parameters out by a ZeRO stage";
      return signalPassFailure();
    }
    const Gradients gradients(module);
    const SmallVector<train::VariableOp> parameters = inOrderOfUse();
    keepsSmallOnes_ = stage == 3 && !isPersistenceWasteful(parameters);
    noteReaders();
    noteUpdates();
    noteUses();
    for (train::VariableOp parameter : parameters)
      place(parameter, bool(gradients.of(parameter.getSymNameAttr())));
  }

private:
  /// Parameters with a gradient in the reverse of the order in which their gradients are complete, which is about that
  /// of their first use: a bucket's gathers and its reduction then lie close together. The others follow as declared.
  SmallVector<train::VariableOp> inOrderOfUse() {
    const SymbolTable symbols(getOperation());
    llvm::SetVector<Operation *> order;
    SmallVector<dist::FragmentOp> fragments(getOperation().getOps<dist::FragmentOp>());
    for (dist::FragmentOp fragment : llvm::reverse(fragments))
      for (Operation &op : llvm::reverse(fragment.getBody().front()))
        if (isa<train::AccumulateOp, train::StoreOp>(op))
          if (auto variable =
                  symbols.lookup<train::VariableOp>(op.getAttrOfType<FlatSymbolRefAttr>("variable").getAttr());
              variable && variable.getOf() && variable.getKind() == train::VariableKind::Gradient)
            order.insert(symbols.lookup(*variable.getOf()));
    for (auto variable : getOperation().getOps<train::VariableOp>())
      if (variable.getKind() == train::VariableKind::Parameter)
        order.insert(variable);
    return llvm::map_to_vector(order, [](Operation *op) { return cast<train::VariableOp>(op); });
  }

  /// Whether padding of the bucket that every rank keeps whole would be more than one in 128 of what a rank holds: with
  /// very many ranks, which own at least a part of a block each.
  bool isPersistenceWasteful(ArrayRef<train::VariableOp> parameters) {
    const int64_t ranks = dist::axisSize(mesh_, dist::dataAxis);
    int64_t all = 0, kept = 0, laidOut = 0;
    for (train::VariableOp parameter : parameters) {
      const int64_t elements = parameter.getTensorType().getNumElements();
      all += elements;
      if (elements > persistenceThreshold || kept + elements > modelPersistenceThreshold)
        continue;
      kept += elements;
      laidOut += llvm::alignTo(elements, dist::BucketOp::block);
    }
    const int64_t padding = dist::BucketOp::sliceElements(laidOut, ranks) * ranks - kept;
    // Of a parameter a rank has about 16 bytes / ranks: itself, its gradient, two moments. Padding has 4 bytes.
    return padding > 16384 && padding * 4 > 16 * all / ranks / 128;
  }

  /// The number of the set of stages that read a parameter; its bucket is theirs alone.
  int64_t stagesOf(StringAttr parameter) {
    return stageSets_.try_emplace(readersOf(parameter), int64_t(stageSets_.size())).first->second;
  }

  SmallVector<int64_t> readersOf(StringAttr parameter) const {
    SmallVector<int64_t> stages;
    for (auto [stage, named] : llvm::enumerate(readers_))
      if (named.contains(parameter))
        stages.push_back(int64_t(stage));
    return stages;
  }

  /// In any phase: whoever reads a parameter holds its bucket.
  void noteReaders() {
    for (auto fragment : getOperation().getOps<dist::FragmentOp>())
      if (const std::optional<uint64_t> stage = fragment.getStage()) {
        if (readers_.size() <= *stage)
          readers_.resize(*stage + 1);
        for (auto read : fragment.getOps<train::ReadOp>())
          readers_[*stage].insert(read.getVariableAttr().getAttr());
      }
  }

  /// Numbers of updates that differ in settings or scalars: one update of a bucket is all its members'.
  void noteUpdates() {
    SmallVector<std::tuple<OperationName, DictionaryAttr, SmallVector<Value>>> kinds;
    for (auto fragment : getOperation().getOps<dist::FragmentOp>())
      for (Operation &op : fragment.getBody().front()) {
        const std::optional<StringAttr> parameter = updatedParameter(&op);
        if (!parameter)
          continue;
        NamedAttrList settings;
        for (NamedAttribute attribute : op.getAttrDictionary())
          if (!isa<FlatSymbolRefAttr>(attribute.getValue()) && attribute.getName() != referenceAttribute)
            settings.push_back(attribute);
        const std::tuple kind(op.getName(), settings.getDictionary(&getContext()),
                              SmallVector<Value>(op.getOperands()));
        auto *known = llvm::find(kinds, kind);
        updates_.try_emplace(*parameter, known - kinds.begin());
        if (known == kinds.end())
          kinds.push_back(kind);
      }
  }

  /// In which type parameters are used: null where not all uses are casts to one smaller type.
  void noteUses() {
    for (auto fragment : getOperation().getOps<dist::FragmentOp>())
      for (auto read : fragment.getOps<train::ReadOp>())
        noteUse(read.getVariableAttr().getAttr(), read.getResult());
  }
  void noteUse(StringAttr variable, Value value) {
    for (Operation *user : value.getUsers())
      if (auto reshape = dyn_cast<train::ReshapeOp>(user))
        noteUse(variable, reshape.getResult());
      else if (const Type type = isa<train::CastOp>(user) ? narrowTypeOf(user->getOperand(0)) : Type();
               usedAs_.try_emplace(variable, type).first->second != type)
        usedAs_[variable] = {};
  }

  void place(train::VariableOp parameter, bool trained) {
    if (parameter->hasAttr(bucketAttribute) || !isa<FloatType>(parameter.getTensorType().getElementType()))
      return;
    const int64_t elements = parameter.getTensorType().getNumElements();
    const bool small =
        stage == 3 && elements <= persistenceThreshold && persistent_ + elements <= modelPersistenceThreshold;
    persistent_ += small ? elements : 0;
    const Type usedAs = usedAs_.lookup(parameter.getSymNameAttr());
    const int64_t zeroStage = forLaunches ? (usedAs ? 3 : 1) : small && keepsSmallOnes_ ? 2 : stage;
    const bool works = worksIn16Bits && usedAs && !forLaunches && (stage == 1 || stage == 2) &&
                       readersOf(parameter.getSymNameAttr()).size() == 1; // each would gather it
    if (!trained && ((zeroStage < 3 && !works) || forLaunches))
      return; // nothing of it is shared out
    const int64_t room = llvm::alignTo(elements, dist::BucketOp::block);
    const bool padded = forLaunches && room != elements; // what is between has to be made zero in each step
    const Type narrow = zeroStage == 3 || works ? usedAs : Type();
    Open &open =
        open_[{parameter.getTensorType().getElementType(), narrow, zeroStage * 8 + trained * 4 + small * 2 + padded,
               stagesOf(parameter.getSymNameAttr()), updates_.lookup(parameter.getSymNameAttr())}];
    if (open.name.empty() || open.elements + room > bucketElements)
      open = {"zero." + std::to_string(count_++), 0};
    open.elements += room;
    Builder builder(&getContext());
    parameter->setAttr(bucketAttribute, builder.getStringAttr(open.name));
    parameter->setAttr(zeroStageAttribute, builder.getI64IntegerAttr(zeroStage));
    if (works)
      parameter->setAttr(workingTypeAttribute, TypeAttr::get(usedAs));
  }

  /// The bucket that takes the next parameter of its kind, if it has room.
  struct Open {
    std::string name;
    int64_t elements = 0;
  };
  dist::MeshOp mesh_;
  // By (element type, smaller type of all uses, (zeroStage, trained, small, padded), pipeline stages that read them,
  // how they are updated); looked up.
  llvm::DenseMap<std::tuple<Type, Type, int64_t, int64_t, int64_t>, Open> open_;
  llvm::DenseMap<StringAttr, Type> usedAs_;                  // looked up
  llvm::DenseMap<StringAttr, int64_t> updates_;              // kinds of update; looked up
  llvm::MapVector<SmallVector<int64_t>, int64_t> stageSets_; // their numbers
  std::vector<llvm::DenseSet<StringAttr>> readers_;          // symbols that each stage reads
  int64_t count_ = 0, persistent_ = 0;
  bool keepsSmallOnes_ = false;
};

} // namespace
