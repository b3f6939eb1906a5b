//===- FitMemory.cpp - as little recompute as fits --------------------------===//
#include "compiler/driver/FitMemory.h"

#include "compiler/driver/Pipelines.h"
#include "compiler/passes/Recompute.h"
#include "dialects/Plan/Plan.h"
#include "runtime/core/Error.h"

#include <algorithm>
#include <limits>

using namespace mlir;
using namespace ds;
using namespace ds::driver;

namespace {

constexpr int64_t highest = std::numeric_limits<int64_t>::max(); // ds-choose-recompute takes what there is

/// 2 L for a model of L layers; 0 where ds-choose-recompute did not look.
int64_t levelsOf(ModuleOp module) {
  const auto levels = module->getAttrOfType<IntegerAttr>(recomputeLevelsAttribute);
  return levels ? levels.getInt() : 0;
}

/// Of the rank that needs most.
int64_t deviceBytes(ModuleOp planned) {
  int64_t most = 0;
  for (auto role : planned.getOps<plan::RoleOp>()) {
    int64_t bytes = 0;
    for (auto arena : role.getOps<plan::ArenaOp>())
      if (arena.getSpace() == "device")
        bytes += int64_t(arena.getBytes().value_or(0));
    most = std::max(most, bytes);
  }
  return most;
}

/// Plans at one level after the other; nothing is estimated.
class LevelSearch {
public:
  LevelSearch(ModuleOp module, CompileOptions options, const DiagnosticCollector &diagnostics)
      : module_(module), options_(std::move(options)), diagnostics_(diagnostics) {}

  struct Planned {
    int64_t level, bytes;
    OwningOpRef<ModuleOp> module;
  };

  Planned at(int64_t level) {
    options_.recompute.level = level;
    OwningOpRef<ModuleOp> planned = module_.clone();
    runPipeline(*planned, "distribution", buildDistributePipeline, options_, diagnostics_);
    runPipeline(*planned, "planning", buildPlanPipeline, options_, diagnostics_);
    return {std::min(level, levelsOf(*planned)), deviceBytes(*planned), std::move(planned)};
  }

  /// From the highest level down as long as that takes fewer bytes: a layer whose backward comes soon may cost more to
  /// repeat than to keep.
  Planned smallest() {
    Planned least = at(highest);
    while (least.level > 0) {
      Planned below = at(least.level - 1);
      if (below.bytes > least.bytes)
        break;
      least = std::move(below);
    }
    return least;
  }

private:
  ModuleOp module_;
  CompileOptions options_;
  const DiagnosticCollector &diagnostics_;
};

} // namespace

RecomputeSettings ds::driver::recomputeSettings(const config::Recompute &recompute) {
  RecomputeSettings settings;
  settings.level = recompute.mode == config::Recompute::Mode::Full ? highest : recompute.level;
  settings.checkpoints = recompute.checkpoints;
  for (const config::Recompute::Rule &rule : recompute.rules)
    settings.rules.push_back(rule.modules + (rule.again ? "=recompute" : "=save"));
  return settings;
}

OwningOpRef<ModuleOp> ds::driver::fitMemory(ModuleOp module, int64_t room, CompileOptions &options,
                                            const DiagnosticCollector &diagnostics) {
  LevelSearch search(module, options, diagnostics);
  LevelSearch::Planned best = search.at(0);
  if (best.bytes > room) {
    best = search.smallest();
    int64_t tooLow = 0;
    while (best.bytes <= room && best.level - tooLow > 1) {
      const int64_t middle = tooLow + (best.level - tooLow) / 2;
      if (LevelSearch::Planned planned = search.at(middle); planned.bytes <= room)
        best = std::move(planned);
      else
        tooLow = middle;
    }
  }
  options.recompute.level = best.level;
  return std::move(best.module);
}

void ds::driver::noteRecompute(ModuleOp module, const RecomputeSettings &settings, const config::Recompute &asked,
                               plan::proto::Plan &plan) {
  using Mode = config::Recompute::Mode;
  if (asked.mode == Mode::Rules) {
    plan.mutable_recompute(); // the rules stand in the configuration
    return;
  }
  const int64_t levels = levelsOf(module), layers = levels / 2;
  if (asked.mode == Mode::Level && settings.level > levels)
    throw Error("deepstatic.recompute is " + std::to_string(settings.level) + ", but the model has only " +
                    std::to_string(levels) + " levels: 2 for each of its " + std::to_string(layers) +
                    " layers that can be computed again",
                "--set deepstatic.recompute=full");
  const int64_t level = std::min(settings.level, levels), whole = std::max<int64_t>(0, level - layers);
  if (level == 0)
    return;
  plan::proto::Recompute &note = *plan.mutable_recompute();
  note.set_layers(uint32_t(layers));
  note.set_whole(uint32_t(whole));
  note.set_cheap(uint32_t(std::min(level, layers) - whole));
}
