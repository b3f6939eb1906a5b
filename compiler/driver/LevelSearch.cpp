//===- LevelSearch.cpp - the level of recompute that a room asks for --------===//
#include "compiler/driver/LevelSearch.h"

#include "compiler/analysis/Cost.h"
#include "compiler/driver/RunPipeline.h"
#include "compiler/passes/recompute/Recompute.h"
#include "dialects/Plan/Plan.h"
#include "dialects/Train/Train.h"

#include <algorithm>
#include <array>
#include <utility>

using namespace mlir;
using namespace ds;
using namespace ds::driver;

namespace {

constexpr int64_t maxTries = 8;     // levels above the one that needs as little as the highest
constexpr int64_t maxReturns = 8;   // activations that are tried to stay after all
constexpr int64_t firstTries = 8;   // levels, evenly from the lowest to the highest
constexpr int64_t shortPlan = 4000; // commands of all roles, up to which a search in vain is made in full

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

int64_t hostBytes(ModuleOp planned) { return bytesIn(plan::MemorySpace::Host, planned); }

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

} // namespace

train::RecomputeSummaryAttr ds::driver::summaryOf(ModuleOp module) {
  auto summary = module->getAttrOfType<train::RecomputeSummaryAttr>(recomputeSummaryAttribute);
  return summary ? summary : train::RecomputeSummaryAttr::get(module.getContext(), 0, 0, 0, 0);
}

LevelSearch::LevelSearch(ModuleOp module, CompileOptions options, const DiagnosticCollector &diagnostics)
    : module_(module), options_(std::move(options)), diagnostics_(diagnostics) {
  const OffloadOptions &offload = options_.offload;
  if (offload.parameters.empty() && offload.optimizer.empty() && offload.activations.empty() &&
      offload.values.empty() && !module_->hasAttr(linksAttribute))
    trials_.emplace(module_, options_, diagnostics_);
}

LevelSearch::Planned LevelSearch::at(int64_t level) {
  options_.recompute.level = level;
  OwningOpRef<ModuleOp> planned = makePlan();
  constexpr std::array<std::pair<bool OffloadOptions::*, bool>, 3> savings = {
      std::pair{&OffloadOptions::speculates, false}, // old parameters, and all gradients, wait for the norm
      {&OffloadOptions::sparesHostMemory, true},
      {&OffloadOptions::gradientsInFiles, true}};
  OffloadOptions best = options_.offload;
  if (!spared_ && lacksHostMemory(*planned)) {
    for (const auto &[option, saves] : savings) { // one on top of the other: one alone may need more
      if (std::exchange(options_.offload.*option, saves) == saves)
        continue;
      if (OwningOpRef<ModuleOp> other = makePlan(); hostBytes(*other) < hostBytes(*planned)) {
        planned = std::move(other);
        best = options_.offload;
      }
      if (!lacksHostMemory(*planned))
        break;
    }
    spared_ = lacksHostMemory(*planned);
  }
  options_.offload = best;
  return this->planned(std::move(planned));
}

std::optional<LevelSearch::Planned> LevelSearch::planWithin(int64_t level, int64_t room) {
  if (!trials_) {
    Planned found = at(level);
    return found.bytes <= room ? std::optional(std::move(found)) : std::nullopt;
  }
  options_.recompute.level = level;
  OwningOpRef<ModuleOp> module = trials_->buffersWithin(level, room);
  if (!module)
    return std::nullopt;
  runPipeline(*module, "planning", buildOffsetPipeline, options_, diagnostics_);
  Planned found = planned(std::move(module));
  return found.bytes <= room ? std::optional(std::move(found)) : std::nullopt;
}

LevelSearch::Planned LevelSearch::planned(OwningOpRef<ModuleOp> module) {
  return {.level = summaryOf(*module).getLevel(),
          .bytes = bytesIn(plan::MemorySpace::Device, *module),
          .module = std::move(module),
          .recompute = options_.recompute,
          .offload = options_.offload,
          .links = module_->getAttr(linksAttribute)};
}

OwningOpRef<ModuleOp> LevelSearch::makePlan() {
  if (trials_) { // which have cut the module
    OwningOpRef<ModuleOp> planned = trials_->buffersAt(options_.recompute.level);
    runPipeline(*planned, "planning", buildOffsetPipeline, options_, diagnostics_);
    return planned;
  }
  OwningOpRef<ModuleOp> planned = module_.clone();
  runPipeline(*planned, "distribution", buildDistributePipeline, options_, diagnostics_);
  runPipeline(*planned, "planning", buildPlanPipeline, options_, diagnostics_);
  return planned;
}

bool LevelSearch::lacksHostMemory(ModuleOp planned) const {
  return options_.offload.optimizer == "nvme" && options_.hostMemory > 0 && hostBytes(planned) > options_.hostMemory;
}

std::optional<LevelSearch::Planned> LevelSearch::fitting(int64_t level, int64_t room) {
  if (!trials_)
    return planWithin(level, room);
  if (!trials_->fits(level, room))
    return std::nullopt;
  return Planned{.level = level, .bytes = room};
}

std::optional<LevelSearch::Planned> LevelSearch::needing(int64_t level, int64_t room) {
  if (!trials_)
    return planWithin(level, room);
  const std::optional<LevelTrials::Needs> needs = trials_->needs(level, room);
  if (!needs)
    return std::nullopt;
  return Planned{.level = needs->level, .bytes = needs->bytes, .role = needs->role};
}

LevelSearch::Planned LevelSearch::complete(Planned planned) {
  return planned.module ? std::move(planned) : at(planned.level);
}

LevelSearch::Planned LevelSearch::smallest(bool strict) {
  Planned least = *needing(highest);
  while (least.level > 0) {
    // Between the two levels, what needs most stays as it is.
    const int64_t change = trials_ ? trials_->changeBelow({least.level, least.bytes, least.role}) : least.level - 1;
    if (std::optional<Planned> next = change < 0 ? std::nullopt : needing(change, least.bytes - strict)) {
      least = *std::move(next);
      continue;
    }
    for (int64_t level = change + 1; level < least.level && !strict; ++level)
      if (std::optional<Planned> next = needing(level, least.bytes)) {
        least = *std::move(next);
        break;
      }
    break;
  }
  return least;
}

bool LevelSearch::isHopeless(int64_t room) const {
  return trials_ && trials_->isHopeless(room) && trials_->commands() > shortPlan;
}

LevelSearch::Planned LevelSearch::inVain(int64_t room) {
  Planned least = smallest(/*strict=*/true);
  return least.bytes > room ? complete(std::move(least)) : fromSmallest(room);
}

LevelSearch::Planned LevelSearch::fromSmallest(int64_t room) {
  Planned best = smallest(/*strict=*/false);
  return best.bytes <= room ? lowest(room, std::move(best)) : below(room, std::move(best));
}

LevelSearch::Planned LevelSearch::halve(int64_t room, Planned top, int64_t tooLow) {
  while (top.level - tooLow > 1) {
    const int64_t middle = tooLow + (top.level - tooLow) / 2;
    if (std::optional<Planned> planned = fitting(middle, room))
      top = *std::move(planned);
    else
      tooLow = middle;
  }
  return top;
}

LevelSearch::Planned LevelSearch::lowest(int64_t room, Planned top, int64_t tooLow) {
  const int64_t last = top.level;
  Planned found = complete(halve(room, std::move(top), tooLow));
  while (found.bytes > room && found.level < last) // the full effort may lose what the first offsets found
    found = at(found.level + 1);
  return found;
}

LevelSearch::Planned LevelSearch::below(int64_t room, Planned top) {
  const int64_t last = top.level;
  Planned least = halve(top.bytes, std::move(top), 0);
  if (!least.module)
    least = *needing(least.level);
  const int64_t step = std::max<int64_t>(1, (last - least.level) / maxTries);
  for (int64_t level = least.level + step; level <= last && least.bytes > room; level += step)
    if (std::optional<Planned> planned = needing(level, least.bytes - 1))
      least = *std::move(planned);
  return complete(std::move(least));
}

LevelSearch::Planned LevelSearch::within(int64_t room) {
  std::optional<Planned> kept = planWithin(0, room);
  if (!kept && !trials_ && module_->removeAttr(linksAttribute))
    kept = planWithin(0, room);
  if (kept)
    return *std::move(kept);
  return isHopeless(room) ? inVain(room) : fromSmallest(room);
}

std::optional<LevelSearch::Planned> LevelSearch::first(int64_t room) {
  Planned top = at(highest);
  const int64_t levels = top.level;
  for (int64_t part = 0, tooLow = 0; part <= firstTries; ++part) {
    const int64_t level = levels * part / firstTries;
    if (part > 0 && level == tooLow)
      continue;
    if (Planned planned = level == levels ? std::move(top) : at(level); planned.bytes <= room)
      return lowest(room, std::move(planned), tooLow);
    tooLow = level;
  }
  return std::nullopt;
}

LevelSearch::Planned LevelSearch::fewest(int64_t room, Planned best) {
  const Left left(*best.module);
  if (left.values.empty())
    return best;
  options_.offload.activations.pop_back(); // the rule that takes all
  options_.recompute = best.recompute;
  std::vector<char> leaves(left.values.size(), 1);
  for (int64_t tooFew = -1, enough = int64_t(leaves.size()); enough - tooFew > 1;) {
    const int64_t middle = tooFew + (enough - tooFew) / 2;
    std::vector<char> fewer(leaves.size(), 0);
    std::fill_n(fewer.begin(), middle, 1);
    if (Planned planned = leaving(left.values, fewer); planned.bytes <= room) {
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
    if (Planned planned = leaving(left.values, leaves); planned.bytes <= room)
      best = std::move(planned);
    else {
      leaves[next] = 1;
      atMost = left.bytes[next] - 1;
    }
  }
  return best;
}

LevelSearch::Planned LevelSearch::leaving(const std::vector<std::string> &values, const std::vector<char> &leaves) {
  options_.offload.values.clear();
  for (size_t i = 0; i < leaves.size(); ++i)
    if (leaves[i])
      options_.offload.values.push_back(values[i]);
  return at(options_.recompute.level);
}
