//===- PlanWithinMemory.cpp - as little recompute as fits -----------------===//
#include "compiler/driver/PlanWithinMemory.h"

#include "compiler/analysis/Cost.h"
#include "compiler/driver/RunPipeline.h"
#include "compiler/passes/recompute/Recompute.h"
#include "core/Error.h"
#include "dialects/Plan/Plan.h"
#include "dialects/Train/Train.h"

#include <algorithm>
#include <limits>

using namespace mlir;
using namespace ds;
using namespace ds::driver;

namespace {

constexpr int64_t highest = std::numeric_limits<int64_t>::max(); // ds-choose-recompute takes what there is

constexpr int64_t maxTries = 32;  // levels above the one that needs as little as the highest
constexpr int64_t maxReturns = 8; // activations that are tried to stay after all

/// What ds-choose-recompute has chosen; nothing where it was not asked.
train::RecomputeSummaryAttr summaryOf(ModuleOp module) {
  auto summary = module->getAttrOfType<train::RecomputeSummaryAttr>(recomputeSummaryAttribute);
  return summary ? summary : train::RecomputeSummaryAttr::get(module.getContext(), 0, 0, 0, 0);
}

/// Of the rank that needs most.
int64_t bytesIn(plan::MemorySpace space, ModuleOp planned) {
  int64_t most = 0;
  for (auto role : planned.getOps<plan::RoleOp>()) {
    int64_t bytes = 0;
    for (auto arena : role.getOps<plan::ArenaOp>())
      if (arena.getSpace() == space)
        bytes += int64_t(arena.getBytes().value_or(0));
    most = std::max(most, bytes);
  }
  return most;
}

/// What left by the rule that takes all activations, what is away longest first.
struct Left {
  explicit Left(ModuleOp planned) {
    const auto left = planned->getAttrOfType<DictionaryAttr>(leftAttribute);
    if (!left)
      return;
    for (auto name : left.getAs<ArrayAttr>("values").getAsRange<StringAttr>())
      values.push_back(name.str());
    const ArrayRef<int64_t> own = left.getAs<DenseI64ArrayAttr>("bytes").asArrayRef();
    bytes.assign(own.begin(), own.end());
  }

  /// Of those that leave, the largest of at most some bytes, and of such the one that is away shortest; else the end.
  size_t largest(const std::vector<char> &leaves, int64_t atMost) const {
    size_t best = leaves.size();
    for (size_t i = 0; i < leaves.size(); ++i)
      if (leaves[i] && bytes[i] <= atMost && (best == leaves.size() || bytes[i] >= bytes[best]))
        best = i;
    return best;
  }

  std::vector<std::string> values;
  std::vector<int64_t> bytes;
};

/// Plans at one level after the other; nothing is estimated.
class LevelSearch {
public:
  LevelSearch(ModuleOp module, CompileOptions options, const DiagnosticCollector &diagnostics)
      : module_(module), options_(std::move(options)), diagnostics_(diagnostics) {}

  struct Planned {
    int64_t level, bytes;
    OwningOpRef<ModuleOp> module;
    OffloadOptions offload;
    int64_t asked; // as ds-choose-recompute took it
  };

  Planned at(int64_t level) {
    options_.recompute.level = level;
    OwningOpRef<ModuleOp> planned = makePlan();
    if (lacksHostMemory(*planned) && !options_.offload.gradientsInFiles) {
      options_.offload.gradientsInFiles = true;
      OwningOpRef<ModuleOp> other = makePlan();
      if (hostBytes(*other) < hostBytes(*planned))
        planned = std::move(other);
      else // what is on its way takes more than the gradients
        options_.offload.gradientsInFiles = false;
    }
    const int64_t bytes = bytesIn(plan::MemorySpace::Device, *planned);
    return {summaryOf(*planned).getLevel(), bytes, std::move(planned), options_.offload, level};
  }

  /// From the highest level down as long as that takes fewer bytes: a layer whose backward comes soon may cost more to
  /// repeat than to keep.
  Planned smallest() {
    Planned least = at(highest);
    while (least.level > 0) {
      Planned next = at(least.level - 1);
      if (next.bytes > least.bytes)
        break;
      least = std::move(next);
    }
    return least;
  }

  /// The lowest level that halving finds to need at most `room` bytes, as `top` does.
  Planned lowest(int64_t room, Planned top) {
    for (int64_t tooLow = 0; top.level - tooLow > 1;) {
      const int64_t middle = tooLow + (top.level - tooLow) / 2;
      if (Planned planned = at(middle); planned.bytes <= room)
        top = std::move(planned);
      else
        tooLow = middle;
    }
    return top;
  }

  /// For less room than `top` needs, which is what `smallest` found. No level below the one that is chosen for its
  /// bytes may be taken, for more room would then mean more recompute; from there up, the first of some that fits, or
  /// the one that needs least.
  Planned below(int64_t room, Planned top) {
    const int64_t last = top.level;
    Planned least = lowest(top.bytes, std::move(top));
    const int64_t step = std::max<int64_t>(1, (last - least.level) / maxTries);
    for (int64_t level = least.level + step; level <= last && least.bytes > room; level += step)
      if (Planned planned = at(level); planned.bytes < least.bytes)
        least = std::move(planned);
    return least;
  }

  /// Of a plan that fits, in which all activations leave: with as few of them as are found to do. First the least
  /// number of those that are away longest; then the largest of these stay for which there is room.
  Planned fewest(int64_t room, Planned best) {
    const Left left(*best.module);
    if (left.values.empty())
      return best;
    options_.offload.activations.pop_back(); // the rule that takes all
    options_.recompute.level = best.asked;
    std::vector<char> leaves(left.values.size(), 1);
    for (int64_t tooFew = -1, enough = int64_t(leaves.size()); enough - tooFew > 1;) {
      const int64_t middle = tooFew + (enough - tooFew) / 2;
      std::vector<char> fewer(leaves.size(), 0);
      std::fill_n(fewer.begin(), middle, 1);
      if (Planned planned = leaving(left, fewer); planned.bytes <= room) {
        best = std::move(planned);
        leaves = fewer;
        enough = middle;
      } else
        tooFew = middle;
    }
    int64_t atMost = highest; // bytes; of those tensors whose staying did not fit there are more of that size
    for (int64_t tries = 0; tries < maxReturns; ++tries) {
      const size_t next = left.largest(leaves, std::min(atMost, room - best.bytes));
      if (next == leaves.size())
        break;
      leaves[next] = 0;
      if (Planned planned = leaving(left, leaves); planned.bytes <= room)
        best = std::move(planned);
      else {
        leaves[next] = 1;
        atMost = left.bytes[next] - 1;
      }
    }
    return best;
  }

private:
  static int64_t hostBytes(ModuleOp planned) { return bytesIn(plan::MemorySpace::Host, planned); }

  /// Where gradients in files may help.
  bool lacksHostMemory(ModuleOp planned) const {
    return options_.offload.optimizer == "nvme" && options_.hostMemory > 0 && hostBytes(planned) > options_.hostMemory;
  }

  OwningOpRef<ModuleOp> makePlan() {
    OwningOpRef<ModuleOp> planned = module_.clone();
    runPipeline(*planned, "distribution", buildDistributePipeline, options_, diagnostics_);
    runPipeline(*planned, "planning", buildPlanPipeline, options_, diagnostics_);
    return planned;
  }

  Planned leaving(const Left &left, const std::vector<char> &leaves) {
    options_.offload.values.clear();
    for (size_t i = 0; i < leaves.size(); ++i)
      if (leaves[i])
        options_.offload.values.push_back(left.values[i]);
    return at(options_.recompute.level);
  }

  ModuleOp module_;
  CompileOptions options_;
  const DiagnosticCollector &diagnostics_;
};

} // namespace

ChooseRecomputeOptions ds::driver::recomputeOptions(const config::Recompute &recompute) {
  return {.level = recompute.level,
          .full = recompute.mode == config::Recompute::Mode::Full,
          .checkpoints = recompute.checkpoints,
          .rules = {recompute.rules.begin(), recompute.rules.end()}};
}

OwningOpRef<ModuleOp> ds::driver::planWithinMemory(ModuleOp module, int64_t room, bool searches,
                                                   CompileOptions &options, const DiagnosticCollector &diagnostics) {
  LevelSearch search(module, options, diagnostics);
  const int64_t asked = searches ? 0 : options.recompute.level;
  LevelSearch::Planned best = search.at(asked);
  if (best.bytes > room && module->hasAttr(linksAttribute)) {
    module->removeAttr(linksAttribute); // all that is to leave does, however long compute waits for it
    best = search.at(asked);
  }
  if (!searches)
    return std::move(best.module);
  if (best.bytes > room) {
    best = search.smallest();
    best = best.bytes <= room ? search.lowest(room, std::move(best)) : search.below(room, std::move(best));
  }
  options.recompute.level = best.level;
  return std::move(best.module);
}

OwningOpRef<ModuleOp> ds::driver::planOffloaded(ModuleOp module, int64_t room, bool searches,
                                                const std::vector<OffloadOptions> &choices, CompileOptions &options,
                                                const DiagnosticCollector &diagnostics) {
  const Attribute links = module->getAttr(linksAttribute); // each choice begins with what they can hide
  const int64_t level = searches ? 0 : options.recompute.level;
  for (const OffloadOptions &choice : choices) {
    module->setAttr(linksAttribute, links);
    options.offload = choice;
    LevelSearch tries(module, options, diagnostics);
    LevelSearch::Planned best = tries.at(level);
    const bool isFirst = &choice == &choices.front();
    if (best.bytes > room && !isFirst) {
      module->removeAttr(linksAttribute);
      best = tries.at(level);
    }
    if (best.bytes > room && !isFirst && searches)
      if (best = tries.at(highest); best.bytes <= room)
        best = tries.lowest(room, std::move(best));
    if (best.bytes > room) {
      if (&choice != &choices.back())
        continue;
      return searches ? planWithinMemory(module, room, searches, options, diagnostics) : std::move(best.module);
    }
    if (!isFirst)
      best = tries.fewest(room, std::move(best));
    options.offload = std::move(best.offload);
    if (searches)
      options.recompute.level = best.level;
    return std::move(best.module);
  }
  llvm_unreachable("there is a choice");
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
