//===- PlanOffloaded.cpp - what leaves device memory, as the memory asks for it ---===//
#include "compiler/driver/PlanOffloaded.h"

#include "compiler/analysis/Cost.h"
#include "compiler/driver/LevelSearch.h"
#include "compiler/driver/StepTime.h"
#include "compiler/export/Export.h"
#include "compiler/report/Transfers.h"

#include <limits>
#include <optional>

using namespace mlir;
using namespace ds;
using namespace ds::driver;

namespace {

constexpr double worthPlans = 0.01; // of a step: what compute waits for transfers
constexpr int64_t waitingTries = 4; // levels, evenly from the dearest that is worth its time down

std::optional<StepTime> timeOf(ModuleOp planned, const plan::proto::Machine &machine) {
  plan::proto::Plan plan;
  *plan.mutable_machine() = machine;
  return failed(exporting::exportRoles(planned, plan)) ? std::nullopt : stepTime(plan);
}

class OffloadSearch {
public:
  using Planned = LevelSearch::Planned;

  OffloadSearch(ModuleOp module, int64_t room, const std::vector<OffloadOptions> &choices,
                const CompileOptions &options, const DiagnosticCollector &diagnostics)
      : module_(module), room_(room), choices_(choices), options_(options), diagnostics_(diagnostics),
        links_(module->getAttr(linksAttribute)) {}

  /// One decision after the other: the first choice that fits, with as little recompute as that needs.
  Planned inTurn(bool searches) {
    const int64_t level = searches ? 0 : options_.recompute.level;
    for (chosen_ = 0;; ++chosen_) {
      LevelSearch tries = searchOf(chosen_, options_.recompute.away);
      Planned best = tries.at(level);
      if (chosen_ == 0 && best.bytes <= room_)
        return best;
      const bool isLast = chosen_ + 1 == choices_.size();
      if (chosen_ == 0 && !isLast)
        continue;
      if (best.bytes > room_) {
        module_->removeAttr(linksAttribute); // all that is to leave does, however long compute waits for it
        best = tries.at(level);
      }
      if (best.bytes > room_ && searches)
        if (best = tries.at(LevelSearch::highest); best.bytes <= room_)
          best = tries.lowest(room_, std::move(best));
      if (best.bytes <= room_)
        return tries.fewest(room_, std::move(best));
      if (isLast)
        return searches ? tries.within(room_) : std::move(best);
    }
  }

  /// Both decisions at once, of the choices up to the one that `inTurn` took: nothing leaves for which compute would
  /// wait, and of what is left as little is computed again as fits. Nothing where that does not fit.
  std::optional<Planned> together(const plan::proto::Machine &machine) {
    std::optional<Planned> best;
    size_t choice = 0;
    double shortest = 0;
    for (size_t next = 1; next <= chosen_; ++next)
      if (std::optional<Planned> planned = searchOf(next, true).first(room_))
        if (const auto time = timeOf(*planned->module, machine); time && (!best || time->step < shortest)) {
          best = std::move(planned);
          shortest = time->step;
          choice = next;
        }
    if (!best)
      return std::nullopt;
    return searchOf(choice, true).fewest(room_, *std::move(best));
  }

  /// Both decisions at once, of the choice that `inTurn` took: what costs less than to wait for its bytes is computed
  /// again, or where that does not fit a part of it, and of the rest as little leaves as fits, however long compute
  /// waits. Nothing where nothing fits, or the level is not below `level`.
  std::optional<Planned> waiting(const plan::proto::Machine &machine, int64_t level) {
    CompileOptions options = optionsOf(chosen_);
    options.recompute.dearest = 1 / report::linkOf(machine, report::Transfer::Out)->bytes_per_second();
    module_->removeAttr(linksAttribute);
    LevelSearch search(module_, std::move(options), diagnostics_);
    Planned planned = search.at(LevelSearch::highest);
    const int64_t dearest = planned.level;
    for (int64_t part = waitingTries - 1; part > 0 && planned.bytes > room_; --part)
      planned = search.at(dearest * part / waitingTries);
    if (planned.bytes > room_ || planned.level >= level)
      return std::nullopt;
    return search.fewest(room_, std::move(planned));
  }

private:
  CompileOptions optionsOf(size_t choice) const {
    CompileOptions options = options_;
    options.offload = choices_[choice];
    return options;
  }

  /// For a choice that begins with what the links can hide.
  LevelSearch searchOf(size_t choice, bool away) {
    module_->setAttr(linksAttribute, links_);
    CompileOptions options = optionsOf(choice);
    options.recompute.away = away;
    return LevelSearch(module_, std::move(options), diagnostics_);
  }

  ModuleOp module_;
  const int64_t room_;
  const std::vector<OffloadOptions> &choices_;
  const CompileOptions &options_;
  const DiagnosticCollector &diagnostics_;
  const Attribute links_;
  size_t chosen_ = 0;
};

} // namespace

OwningOpRef<ModuleOp> ds::driver::planOffloaded(ModuleOp module, int64_t room, bool searches,
                                                const std::vector<OffloadOptions> &choices,
                                                const plan::proto::Machine &machine, CompileOptions &options,
                                                const DiagnosticCollector &diagnostics) {
  OffloadSearch search(module, room, choices, options, diagnostics);
  LevelSearch::Planned best = search.inTurn(searches);
  std::optional<StepTime> shortest = searches ? timeOf(*best.module, machine) : std::nullopt;
  const auto waits = [&] { return best.bytes > room || shortest->waits > worthPlans * shortest->step; };
  const auto consider = [&](std::optional<LevelSearch::Planned> other) {
    const std::optional<StepTime> time = other ? timeOf(*other->module, machine) : std::nullopt;
    if (!time || (best.bytes <= room && time->step >= shortest->step))
      return;
    best = *std::move(other);
    shortest = time;
  };
  if (shortest && waits()) {
    consider(search.together(machine));
    consider(search.waiting(machine, waits() ? LevelSearch::highest : best.level));
  }
  if (best.links)
    module->setAttr(linksAttribute, best.links);
  else
    module->removeAttr(linksAttribute);
  options.offload = std::move(best.offload);
  options.recompute = std::move(best.recompute);
  if (searches)
    options.recompute.level = best.level;
  return std::move(best.module);
}
