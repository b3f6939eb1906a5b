//===- RoundOnce.cpp - parameters are rounded once a step -------------------===//
//
// 1. Of each stage, collect the casts of parameters, or of a rank's slices of them, to smaller types of float, by
//    parameter and type.
// 2. In one fragment the first cast serves all.
// 3. With `keeps`, its result is a dist.value for the step, which other fragments load, unless several stages round the
//    parameter. With several micro-batches the cast stands in the fragment @gather, which a step calls once, first.
// A rounded parameter is a value of the step, made anew from the parameter: it is never stale, and no checkpoint has
// it. DeepSpeed and Megatron-LM keep one from step to step instead, and write it with each update.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/BucketIndex.h"
#include "compiler/analysis/Gradients.h"
#include "compiler/analysis/NarrowUses.h"
#include "compiler/analysis/Stages.h"
#include "compiler/analysis/TrainStep.h"
#include "compiler/passes/zero/Passes.h"
#include "compiler/passes/zero/StepFragment.h"

#include "mlir/IR/Builders.h"

#include "llvm/ADT/MapVector.h"

namespace ds {
#define GEN_PASS_DEF_ROUNDONCE
#include "compiler/passes/zero/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// Casts of one parameter to one type, in the order of their fragments.
using Casts = SmallVector<train::CastOp>;
/// By parameter, or bucket, and type.
using Roundings = llvm::MapVector<std::pair<StringAttr, Type>, Casts>;

struct RoundOnce : ds::impl::RoundOnceBase<RoundOnce> {
  using RoundOnceBase::RoundOnceBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (microbatches < 1) {
      module.emitError() << "microbatches is " << microbatches.getValue() << "; it must be at least 1";
      return signalPassFailure();
    }
    SymbolTable symbols(module);
    const BucketIndex buckets(module);
    const FragmentIndex fragments(module);
    const Gradients gradients(module);
    std::vector<std::pair<dist::FragmentOp, Roundings>> all; // by the forward of a stage
    llvm::DenseMap<StringAttr, int64_t> stages;              // that round a parameter; looked up
    for (dist::FragmentOp forward : fragmentsOf(module, dist::Phase::Forward)) {
      all.emplace_back(forward, roundingsOf(forward, fragments, symbols, buckets));
      for (auto &[what, casts] : all.back().second)
        ++stages[what.first];
    }
    for (auto &[forward, roundings] : all)
      for (auto &[what, casts] : roundings) {
        mergeInFragments(casts);
        // Each stage would keep its own, and what is frozen stays beside its rounding, which one micro-batch uses
        // twice.
        if (keeps && stages[what.first] == 1 &&
            (microbatches > 1 || (casts.size() > 1 && isTrained(what.first, symbols, gradients))))
          keep(what.first, casts, forward, fragments.stages(), symbols);
      }
  }

private:
  static Roundings roundingsOf(dist::FragmentOp forward, const FragmentIndex &fragments, const SymbolTable &symbols,
                               const BucketIndex &buckets) {
    Roundings roundings;
    for (dist::Phase phase : {dist::Phase::Forward, dist::Phase::Backward, dist::Phase::Weight})
      if (dist::FragmentOp fragment = fragments.find(phase, int64_t(*forward.getStage())))
        for (auto cast : fragment.getOps<train::CastOp>())
          if (StringAttr name = roundedBy(cast, symbols, buckets))
            roundings[{name, cast.getType()}].push_back(cast);
    return roundings;
  }

  /// Whether a parameter, or those of a bucket, learn.
  static bool isTrained(StringAttr name, const SymbolTable &symbols, const Gradients &gradients) {
    auto bucket = symbols.lookup<dist::BucketOp>(name);
    return bool(gradients.of(bucket ? cast<FlatSymbolRefAttr>(bucket.getMembers()[0]).getAttr() : name));
  }

  /// The parameter, or the bucket of parameters, that a cast rounds; null if it does something else.
  static StringAttr roundedBy(train::CastOp cast, const SymbolTable &symbols, const BucketIndex &buckets) {
    auto read = cast.getInput().getDefiningOp<train::ReadOp>();
    if (!read || !isNarrowing(cast))
      return {};
    const StringAttr name = read.getVariableAttr().getAttr();
    if (auto bucket = symbols.lookup<dist::BucketOp>(name))
      return buckets.parameterOf(bucket) ? StringAttr() : name;
    auto variable = symbols.lookup<train::VariableOp>(name);
    return variable && variable.getKind() == train::VariableKind::Parameter ? name : StringAttr();
  }

  void keep(StringAttr name, Casts &casts, dist::FragmentOp forward, int64_t stages, SymbolTable &symbols) {
    train::CastOp first = casts.front();
    OpBuilder builder(forward);
    auto value = dist::ValueOp::create(builder, first.getLoc(), (name.getValue() + "::rounded").str(), first.getType());
    value.setForStep(true);
    const auto kept = FlatSymbolRefAttr::get(symbols.insert(value));
    if (microbatches > 1) {
      builder.setInsertionPointToEnd(&stepFragment(forward, stages, symbols).getBody().front());
      Operation *read = builder.clone(*first.getInput().getDefiningOp());
      auto once = cast<train::CastOp>(builder.clone(*first));
      once->setOperand(0, read->getResult(0));
      once->removeAttr(referenceAttribute); // of the step, not of a micro-batch
      dist::StoreOp::create(builder, first.getLoc(), once.getResult(), kept);
    } else {
      builder.setInsertionPointAfter(first);
      dist::StoreOp::create(builder, first.getLoc(), first.getResult(), kept);
      casts.erase(casts.begin());
    }
    for (train::CastOp cast : casts) {
      builder.setInsertionPoint(cast);
      replace(cast, dist::LoadOp::create(builder, cast.getLoc(), cast.getType(), kept));
    }
  }

  /// Leaves the first of each fragment.
  static void mergeInFragments(Casts &casts) {
    Casts firsts;
    for (train::CastOp cast : casts)
      if (firsts.empty() || firsts.back()->getBlock() != cast->getBlock())
        firsts.push_back(cast);
      else
        replace(cast, firsts.back().getResult());
    casts = std::move(firsts);
  }

  static void replace(train::CastOp cast, Value rounded) {
    Operation *read = cast.getInput().getDefiningOp();
    cast.getResult().replaceAllUsesWith(rounded);
    cast.erase();
    if (read->use_empty())
      read->erase();
  }
};

} // namespace
