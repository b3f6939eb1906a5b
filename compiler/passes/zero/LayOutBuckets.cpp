//===- LayOutBuckets.cpp - make the buckets that parameters are assigned to ---===//
//
// 1. Collect the parameters of each bucket's name, as declared; all are of one ZeRO stage and element type.
// 2. Lay them end to end, each from a multiple of 1024 elements on; cut the whole into equal slices, one a rank of
//    axis data.
// 3. Make that bucket for the parameters (from stage 1 on), for their gradients and for each kind of optimizer
//    state. By its sharding a bucket is replicated or sharded, as the stage says. Parameters of which only a rounding
//    is used are sharded from stage 1 on: what every rank holds whole is the rounding.
// A bucket is what FSDP calls a flat parameter (Zhao et al., arXiv 2304.11277).
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/BucketIndex.h"
#include "compiler/analysis/Gradients.h"
#include "compiler/analysis/TrainStep.h"
#include "compiler/passes/zero/Passes.h"
#include "dialects/Dist/Mesh.h"

#include "mlir/IR/Builders.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

namespace ds {
#define GEN_PASS_DEF_LAYOUTBUCKETS
#include "compiler/passes/zero/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// What the annotations say of one bucket.
struct Plan {
  int64_t stage = 0;
  bool trained = false;
  Type working; // in which every use reads it; null: as it is
  SmallVector<train::VariableOp> parameters;
};

struct LayOutBuckets : ds::impl::LayOutBucketsBase<LayOutBuckets> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    mesh_ = dist::requireMesh(module);
    if (!mesh_)
      return signalPassFailure();
    SymbolTable symbols(module);
    builder_ = OpBuilder(mesh_);
    builder_.setInsertionPointAfter(mesh_);
    const Gradients gradients(module);
    gradients_ = &gradients;
    findMoments();
    llvm::MapVector<StringAttr, Plan> plans;
    for (auto variable : module.getOps<train::VariableOp>())
      if (variable->hasAttr(bucketAttribute) && failed(collect(variable, plans)))
        return signalPassFailure();
    for (auto &[name, plan] : plans)
      lay(name, plan, symbols);
  }

private:
  /// What state the optimizer keeps of a parameter, a pending gradient included.
  void findMoments() {
    for (auto fragment : getOperation().getOps<dist::FragmentOp>())
      for (Operation &op : fragment.getBody().front()) {
        const std::optional<StringAttr> parameter = updatedParameter(&op);
        if (!parameter)
          continue;
        train::VariableOp gradient = gradients_->of(*parameter);
        for (NamedAttribute attribute : op.getAttrDictionary())
          if (auto name = dyn_cast<FlatSymbolRefAttr>(attribute.getValue());
              name && name.getAttr() != *parameter && (!gradient || name.getAttr() != gradient.getSymNameAttr()))
            moments_[*parameter].push_back(name.getAttr());
      }
  }

  LogicalResult collect(train::VariableOp variable, llvm::MapVector<StringAttr, Plan> &plans) {
    auto name = variable->getAttrOfType<StringAttr>(bucketAttribute);
    auto stage = variable->getAttrOfType<IntegerAttr>(zeroStageAttribute);
    if (!name || !stage || stage.getInt() < 0 || stage.getInt() > 3 ||
        variable.getKind() != train::VariableKind::Parameter)
      return variable.emitOpError() << "must be a parameter with the name of a bucket in " << bucketAttribute
                                    << " and a stage from 0 to 3 in " << zeroStageAttribute;
    const bool trained = bool(gradients_->of(variable.getSymNameAttr()));
    auto workingType = variable->getAttrOfType<TypeAttr>(workingTypeAttribute);
    const Type working = workingType ? workingType.getValue() : Type();
    if (working && ((stage.getInt() != 1 && stage.getInt() != 2) || !train::isNarrowFloat(working)))
      return variable.emitOpError() << workingTypeAttribute << " is " << working
                                    << "; it is a float of 16 bits, of a parameter under stage 1 or 2";
    if (!trained && stage.getInt() < 3 && !working)
      return variable.emitOpError() << "has no gradient, and only stage 3 and a " << workingTypeAttribute
                                    << " share out parameters; leave " << name << " out";
    Plan &plan = plans[name];
    if (!plan.parameters.empty() &&
        (plan.stage != stage.getInt() || plan.trained != trained || plan.working != working ||
         plan.parameters.front().getTensorType().getElementType() != variable.getTensorType().getElementType())) {
      InFlightDiagnostic error = variable.emitOpError()
                                 << "shares bucket " << name
                                 << " with a parameter of another stage, element or working type, or one without a "
                                    "gradient";
      error.attachNote(plan.parameters.front().getLoc()) << "this one";
      return error;
    }
    plan.stage = stage.getInt();
    plan.trained = trained;
    plan.working = working;
    plan.parameters.push_back(variable);
    return success();
  }

  void lay(StringAttr name, Plan &plan, SymbolTable &symbols) {
    SmallVector<Attribute> parameters, gradients;
    for (train::VariableOp parameter : plan.parameters) {
      parameters.push_back(FlatSymbolRefAttr::get(parameter.getSymNameAttr()));
      if (train::VariableOp gradient = gradients_->of(parameter.getSymNameAttr()))
        gradients.push_back(FlatSymbolRefAttr::get(gradient.getSymNameAttr()));
    }
    const auto replicated = dist::ShardingAttr::getReplicated(&getContext()),
               sharded = dist::ShardingAttr::getSharded(builder_.getStringAttr(dist::dataAxis), 0);
    if (plan.stage > 0)
      make(name, plan.stage == 3 || plan.working ? sharded : replicated, parameters, plan, symbols);
    if (!plan.trained)
      return;
    make(gradientName(name), plan.stage >= 2 ? sharded : replicated, gradients, plan, symbols);
    if (plan.stage == 0)
      return;
    const size_t kinds = moments_.lookup(plan.parameters.front().getSymNameAttr()).size();
    for (size_t kind = 0; kind < kinds; ++kind) {
      SmallVector<Attribute> members;
      for (train::VariableOp parameter : plan.parameters)
        members.push_back(FlatSymbolRefAttr::get(moments_.lookup(parameter.getSymNameAttr())[kind]));
      // "w::exp_avg" lies in "zero.0::exp_avg".
      StringRef suffix = cast<FlatSymbolRefAttr>(members[0]).getValue();
      suffix.consume_front(plan.parameters.front().getSymName());
      make((name.getValue() + suffix).str(), sharded, members, plan, symbols);
    }
  }

  void make(StringRef name, dist::ShardingAttr sharding, ArrayRef<Attribute> members, Plan &plan,
            SymbolTable &symbols) {
    constexpr int64_t block = dist::BucketOp::block;
    SmallVector<int64_t> offsets;
    int64_t end = 0;
    for (train::VariableOp parameter : plan.parameters) {
      offsets.push_back(end);
      end += llvm::alignTo(parameter.getTensorType().getNumElements(), block);
    }
    const int64_t ranks = dist::axisSize(mesh_, dist::dataAxis);
    const int64_t slice = dist::BucketOp::sliceElements(end, ranks);
    auto first = symbols.lookup<train::VariableOp>(cast<FlatSymbolRefAttr>(members.front()).getAttr());
    Type element = first.getTensorType().getElementType(); // sums of gradients may be smaller than parameters
    auto bucket = dist::BucketOp::create(builder_, plan.parameters.front().getLoc(), builder_.getStringAttr(name),
                                         FlatSymbolRefAttr::get(mesh_), builder_.getStringAttr(dist::dataAxis),
                                         TypeAttr::get(RankedTensorType::get({slice * ranks}, element)),
                                         TypeAttr::get(RankedTensorType::get({slice}, element)), sharding,
                                         builder_.getArrayAttr(members), builder_.getDenseI64ArrayAttr(offsets));
    symbols.insert(bucket);
  }

  dist::MeshOp mesh_;
  const Gradients *gradients_ = nullptr;
  OpBuilder builder_{static_cast<MLIRContext *>(nullptr)};
  llvm::DenseMap<StringAttr, SmallVector<StringAttr, 2>> moments_; // by parameter; looked up
};

} // namespace
