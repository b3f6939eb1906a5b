//===- PlanWithinMemory.cpp - as little recompute as fits -----------------===//
#include "compiler/driver/PlanWithinMemory.h"

#include "compiler/analysis/Cost.h"
#include "compiler/analysis/NarrowUses.h"
#include "compiler/driver/LevelSearch.h"
#include "core/Error.h"
#include "dialects/Train/Train.h"

using namespace mlir;
using namespace ds;
using namespace ds::driver;

/// Whether several micro-batches may share what is rounded, in device memory beside the parameter.
static bool mayRoundOnce(ModuleOp module, const CompileOptions &options) {
  const OffloadOptions &offload = options.offload;
  if (options.microbatches == 1 || options.holdsSlices() || !offload.parameters.empty() || offload.optimizer == "host")
    return false;
  if (llvm::is_contained(options.without, "ds-round-once"))
    return false;
  const auto isFound = [](train::CastOp cast) {
    Operation *source = cast.getInput().getDefiningOp();
    while (auto reshape = dyn_cast_if_present<train::ReshapeOp>(source))
      source = reshape.getInput().getDefiningOp();
    return isNarrowing(cast) && isa_and_present<train::ReadOp>(source) ? WalkResult::interrupt()
                                                                       : WalkResult::advance();
  };
  return module.walk(isFound).wasInterrupted();
}

OwningOpRef<ModuleOp> ds::driver::planRoundingOnce(ModuleOp module, int64_t room, bool searches,
                                                   CompileOptions &options, const DiagnosticCollector &diagnostics) {
  if (room == 0 || !mayRoundOnce(module, options))
    return nullptr;
  CompileOptions roomy = options;
  roomy.keepsOperands |= searches && options.device == kernels::Device::Cuda;
  LevelSearch search(module, std::move(roomy), diagnostics);
  if (std::optional<LevelSearch::Planned> planned = search.planWithin(options.recompute.level, room))
    return std::move(planned->module);
  options.roundsOnce = false;
  return nullptr;
}

OwningOpRef<ModuleOp> ds::driver::planWithinMemory(ModuleOp module, int64_t room, bool searches,
                                                   CompileOptions &options, const DiagnosticCollector &diagnostics) {
  bool isHopeless = false;
  if (searches && options.device == kernels::Device::Cuda) { // where there is room, products read what was kept
    CompileOptions roomy = options;
    roomy.keepsOperands = true;
    LevelSearch search(module, std::move(roomy), diagnostics);
    if (std::optional<LevelSearch::Planned> planned = search.planWithin(0, room))
      return std::move(planned->module);
    isHopeless = search.isHopeless(room); // then it is without these operands, too
  }
  LevelSearch search(module, options, diagnostics);
  if (searches) {
    LevelSearch::Planned best = isHopeless ? search.inVain(room) : search.within(room);
    options.recompute.level = best.level;
    return std::move(best.module);
  }
  LevelSearch::Planned best = search.at(options.recompute.level);
  if (best.bytes > room && module->hasAttr(linksAttribute)) {
    module->removeAttr(linksAttribute); // all that is to leave does, however long compute waits for it
    best = search.at(options.recompute.level);
  }
  return std::move(best.module);
}

void ds::driver::noteRecompute(ModuleOp module, const config::Recompute &asked, plan::proto::Plan &plan) {
  using Mode = config::Recompute::Mode;
  const train::RecomputeSummaryAttr summary = summaryOf(module);
  if (asked.mode == Mode::Level && asked.level > summary.getLevels())
    throw Error("deepstatic.recompute is " + std::to_string(asked.level) + ", but the model has only " +
                    std::to_string(summary.getLevels()) + " levels, of " + std::to_string(summary.getLayers()) +
                    " layers that can be computed again",
                "--set deepstatic.recompute=full");
  if (summary.getLayersAgain() == 0 && asked.mode != Mode::Rules) // what the rules name, stands in the configuration
    return;
  plan::proto::Recompute &note = *plan.mutable_recompute();
  note.set_level(uint32_t(summary.getLevel()));
  note.set_levels(uint32_t(summary.getLevels()));
  note.set_layers(uint32_t(summary.getLayers()));
  note.set_layers_again(uint32_t(summary.getLayersAgain()));
}
