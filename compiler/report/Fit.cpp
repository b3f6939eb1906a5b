//===- Fit.cpp - whether what a plan needs is there -----------------------===//
#include "compiler/report/Fit.h"

#include "compiler/config/Hjson.h"
#include "compiler/report/Facts.h"
#include "compiler/report/PeakMemory.h"
#include "core/Error.h"
#include "runtime/plan/plan.pb.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ds::report {
namespace {

using plan::proto::Buffer;
using plan::proto::Plan;

/// What the resolved configuration says at a path; null where it says nothing.
config::Node resolved(const Plan &plan, std::string_view path) {
  try {
    const config::Node config = config::parseHjsonValue(plan.config_json(), "the resolved configuration");
    const config::Node *value = config::at(config, path);
    return value ? *value : config::Node();
  } catch (const Error &) {
    return {};
  }
}

int64_t zeroStage(const Plan &plan) {
  return resolved(plan, "zero_optimization.stage").integer; // 0 in any other kind of value
}

/// Whether less could be kept for the backward: the user has said what is.
bool couldRecomputeMore(const Plan &plan) {
  const config::Node asked = resolved(plan, "deepstatic.recompute");
  return asked.kind != config::Node::Kind::Null && asked.text != "auto" && asked.text != "full";
}

/// "21.3MiB": bytes rounded up, as --device-memory takes them.
std::string roundedUp(uint64_t bytes) {
  static constexpr std::pair<const char *, int> units[] = {{"GiB", 30}, {"MiB", 20}, {"KiB", 10}};
  for (const auto &[name, shift] : units)
    if (bytes >> shift >= 10) {
      const uint64_t tenths = (bytes * 10 + (uint64_t(1) << shift) - 1) >> shift;
      return std::to_string(tenths / 10) + (tenths % 10 == 0 ? "" : "." + std::to_string(tenths % 10)) + name;
    }
  return std::to_string(bytes);
}

/// What makes less of a category.
std::string remedy(const Plan &plan, Buffer::Category category) {
  const auto shareOut = [&](int64_t wanted) {
    const std::string stage = "zero_optimization.stage " + std::to_string(wanted);
    if (worldSize(plan).data == 1)
      return (worldSize(plan).pipe > 1 ? "several data-parallel ranks with " : "several ranks with ") + stage +
             " shard them";
    return zeroStage(plan) < wanted ? stage + " shards them over the ranks" : "more ranks hold less each";
  };
  switch (category) {
  case Buffer::OPTIMIZER:
    return shareOut(1);
  case Buffer::GRADIENTS:
    return shareOut(2);
  case Buffer::WEIGHTS:
    return shareOut(3);
  default:
    if (couldRecomputeMore(plan))
      return "deepstatic.recompute \"auto\" keeps less where it has to";
    return plan.training().micro_batch_size() > 1
               ? "a smaller train_micro_batch_size_per_gpu with more gradient_accumulation_steps needs less"
               : "a shorter sequence needs less";
  }
}

uint64_t neededOnEveryRank(const Plan &plan, std::string_view space) {
  uint64_t needed = 0;
  for (const FitSpace &one : fitSpaces(plan))
    if (one.space == space)
      needed = std::max(needed, one.needed);
  return needed;
}

std::string recomputed(const Plan &plan) {
  const plan::proto::Recompute &recompute = plan.recompute();
  return recompute.layers() == 0 ? ""
                                 : ", with something computed again in " + grouped(recompute.layers_again()) + " of " +
                                       plural(recompute.layers(), "layer");
}

std::string sentenceOf(const Plan &plan, const FitSpace &space) {
  const SpaceMemory memory = measure(*space.role, space.space);
  const auto most = std::ranges::max_element(memory.atPeak);
  const auto category = Buffer::Category(most - memory.atPeak.begin());
  return "role " + space.role->name() + ", rank " + rankRanges(*space.role) + ", needs " + grouped(space.needed) +
         " bytes of " + std::string(space.space) + " memory, " + grouped(space.needed - space.room) +
         " more than the " + grouped(space.room) + " that machine " + plan.machine().name() + " has for it; " +
         std::string(categoryName(category)) + " hold the most, " + bytesText(*most) + ": " + remedy(plan, category) +
         "; " + roundedUp(neededOnEveryRank(plan, space.space)) + " would do as it is" + recomputed(plan);
}

} // namespace

std::string_view name(Verdict verdict) {
  switch (verdict) {
  case Verdict::Fits:
    return "fits";
  case Verdict::DoesNotFit:
    return "does_not_fit";
  default:
    return "rejected";
  }
}

std::vector<FitSpace> fitSpaces(const Plan &plan) {
  std::vector<FitSpace> spaces;
  for (const plan::proto::Role &role : plan.roles())
    for (const std::string_view space : {"device", "host", "nvme"}) {
      FitSpace one{&role, space};
      for (const plan::proto::Arena &arena : role.arenas())
        one.needed += arena.space() == space ? arena.bytes() : 0;
      if (one.needed == 0)
        continue;
      if (space == "device") {
        one.needed += plan.machine().reserve();
        one.room = plan.machine().device_memory();
      } else if (space == "host")
        one.room = plan.machine().host_memory();
      spaces.push_back(one);
    }
  return spaces;
}

Verdict verdictOf(const FitCase &one) {
  if (!one.plan)
    return Verdict::Rejected;
  return std::ranges::all_of(fitSpaces(*one.plan), &FitSpace::fits) ? Verdict::Fits : Verdict::DoesNotFit;
}

Verdict verdictOf(std::span<const FitCase> cases) {
  Verdict worst = Verdict::Fits;
  for (const FitCase &one : cases)
    worst = std::max(worst, verdictOf(one));
  return worst;
}

std::string shortageOf(const Plan &plan) {
  for (const FitSpace &space : fitSpaces(plan))
    if (!space.fits())
      return sentenceOf(plan, space);
  return {};
}

std::string reasonOf(const FitCase &one) { return one.plan ? shortageOf(*one.plan) : one.refusal; }

} // namespace ds::report
