//===- LevelTrials.cpp - the bytes that levels of recompute need, without plans ---===//
#include "compiler/driver/LevelTrials.h"

#include "compiler/analysis/Stages.h"
#include "compiler/driver/LevelSearch.h"
#include "compiler/driver/RunPipeline.h"
#include "compiler/passes/plan/RoleTrials.h"
#include "compiler/passes/recompute/Recompute.h"
#include "dialects/Plan/Plan.h"

#include <algorithm>
#include <memory>
#include <utility>

using namespace mlir;
using namespace ds;
using namespace ds::driver;

ModuleOp LevelTrials::cut() {
  if (!cut_) {
    cut_ = module_.clone();
    tryPipeline(*cut_, "distribution", buildCutPipeline, options_, diagnostics_);
  }
  return *cut_;
}

bool LevelTrials::check(FailureOr<bool> answer) const {
  if (failed(answer))
    diagnostics_.raise("planning");
  return *answer;
}

OwningOpRef<ModuleOp> LevelTrials::buffersAt(int64_t level) {
  options_.recompute.level = level;
  OwningOpRef<ModuleOp> module = cut().clone();
  tryPipeline(*module, "distribution", buildShareOutPipeline, options_, diagnostics_);
  tryPipeline(*module, "planning", buildBufferPipeline, options_, diagnostics_);
  return module;
}

OwningOpRef<ModuleOp> LevelTrials::buffersWithin(int64_t level, int64_t room) {
  OwningOpRef<ModuleOp> module = buffersAt(level);
  commands_ = 0;
  module->walk([&](plan::CommandOpInterface) { ++commands_; });
  for (auto role : llvm::to_vector(module->getOps<plan::RoleOp>()))
    if (!check(RoleTrials(role, trialOptions(options_), known_).mayFit(room))) {
      stateBytes_ = ds::stateBytes(role);
      return nullptr;
    }
  return module;
}

/// The roles' trials, as far as all may fit; nothing where one does not.
std::optional<LevelTrials::Trials> LevelTrials::trialsWithin(ModuleOp module, int64_t level, int64_t room) {
  Trials trials;
  for (auto role : llvm::to_vector(module.getOps<plan::RoleOp>())) {
    trials.push_back(std::make_unique<RoleTrials>(role, trialOptions(options_), known_));
    if (!check(trials.back()->mayFit(room))) {
      refuse(level, room, trials.size() - 1);
      return std::nullopt;
    }
  }
  return trials;
}

bool LevelTrials::fits(int64_t level, int64_t room) {
  if (isRefused(level, room))
    return false;
  OwningOpRef<ModuleOp> module = buffersAt(level);
  const std::optional<Trials> trials = trialsWithin(*module, level, room);
  for (size_t role = 0; trials && role < trials->size(); ++role)
    if (!check((*trials)[role]->fits(room))) {
      refuse(level, room, role);
      return false;
    }
  return trials.has_value();
}

std::optional<LevelTrials::Needs> LevelTrials::needs(int64_t level, int64_t room) {
  if (isRefused(level, room))
    return std::nullopt;
  OwningOpRef<ModuleOp> module = buffersAt(level);
  const std::optional<Trials> trials = trialsWithin(*module, level, room);
  if (!trials)
    return std::nullopt;
  Needs needs{summaryOf(*module).getLevel(), -1, 0};
  for (size_t role = 0; role < trials->size(); ++role) {
    if (role > 0 && check((*trials)[role]->fits(needs.bytes)))
      continue;
    const FailureOr<RoleBytes> bytes = (*trials)[role]->bytes();
    if (failed(bytes))
      diagnostics_.raise("planning");
    if (bytes->device > room) {
      refuse(level, room, role);
      return std::nullopt;
    }
    if (bytes->device > needs.bytes)
      needs = {needs.level, bytes->device, role};
  }
  return needs;
}

int64_t LevelTrials::marksOf(int64_t level, size_t role) {
  if (levels_.empty()) {
    levels_.resize(size_t(options_.pipeline.ranks));
    CompileOptions all = options_;
    all.recompute.level = LevelSearch::highest;
    all.recompute.numbered = true;
    OwningOpRef<ModuleOp> module = cut().clone();
    tryPipeline(
        *module, "distribution",
        [](OpPassManager &pm, const CompileOptions &options) { pm.addPass(createChooseRecompute(options.recompute)); },
        all, diagnostics_);
    module->walk([&](Operation *op) {
      if (auto least = op->getAttrOfType<IntegerAttr>(recomputeAttribute))
        levels_[size_t(stageOf(op).value_or(0)) % levels_.size()].push_back(least.getInt());
    });
    for (std::vector<int64_t> &levels : levels_)
      llvm::sort(levels);
  }
  return llvm::upper_bound(levels_[role], level) - levels_[role].begin();
}

int64_t LevelTrials::changeBelow(const Needs &needs) {
  if (options_.pipeline.ranks == 1 || needs.level == 0) // a level has a layer more than the one below
    return needs.level - 1;
  const int64_t marks = marksOf(needs.level, needs.role);
  int64_t below = -1;
  for (int64_t same = needs.level; same - below > 1;) {
    const int64_t middle = below + (same - below) / 2;
    (marksOf(middle, needs.role) < marks ? below : same) = middle;
  }
  return below;
}

bool LevelTrials::isRefused(int64_t level, int64_t room) {
  return std::ranges::any_of(
      refusals_, [&](const Refusal &one) { return room <= one.room && marksOf(level, one.role) == one.marks; });
}

void LevelTrials::refuse(int64_t level, int64_t room, size_t role) {
  if (options_.pipeline.ranks > 1)
    refusals_.push_back({room, marksOf(level, role), role});
}
