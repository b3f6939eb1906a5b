//===- Fit.cpp - whether what a plan needs is there -----------------------===//
#include "compiler/report/Fit.h"

#include "compiler/report/Advice.h"
#include "compiler/report/Facts.h"
#include "runtime/plan/plan.pb.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace ds::report {
namespace {

using plan::proto::Plan;

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

/// "12KiB would do as it is"
std::string enoughOf(const Plan &plan, const FitSpace &space) {
  return roundedUp(neededOnEveryRank(plan, space.space)) + " would do as it is" + recomputed(plan);
}

std::string lackOf(const Plan &plan, const FitSpace &space) {
  return "role " + space.role->name() + ", rank " + rankRanges(*space.role) + ", needs " + bytesText(space.needed) +
         " of " + std::string(space.space) + " memory, " + bytesText(space.needed - space.room) + " more than the " +
         bytesText(space.room) + " that machine " + plan.machine().name() + " has for it";
}

/// The first that lacks room.
std::optional<FitSpace> tightSpace(const Plan &plan) {
  const std::vector<FitSpace> spaces = fitSpaces(plan);
  const auto tight = std::ranges::find_if(spaces, [](const FitSpace &space) { return !space.fits(); });
  return tight == spaces.end() ? std::nullopt : std::optional(*tight);
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
  return !one.refusal.empty() ? Verdict::Rejected : tightSpace(*one.plan) ? Verdict::DoesNotFit : Verdict::Fits;
}

Verdict verdictOf(std::span<const FitCase> cases) {
  Verdict worst = Verdict::Fits;
  for (const FitCase &one : cases)
    worst = std::max(worst, verdictOf(one));
  return worst;
}

std::string shortageOf(const Plan &plan) {
  const std::optional<FitSpace> space = tightSpace(plan);
  return !space ? ""
                : lackOf(plan, *space) + "; " + memoryAdvice(plan, *space->role, space->space) + "; " +
                      enoughOf(plan, *space);
}

std::string reasonOf(const FitCase &one) { return one.refusal.empty() ? shortageOf(*one.plan) : one.refusal; }

std::string otherwiseOf(const FitCase &one) {
  if (one.refusal.empty() || !one.plan)
    return "";
  std::string text;
  for (const auto &[word, changes, flag] : {std::tuple("without ", &one.without, ""), {"with ", &one.with, "--set "}})
    for (const std::string &change : *changes)
      text += (text.empty() ? "" : ", ") + std::string(&change == &changes->front() ? word : "") + flag + change;
  const std::string shortage = shortageOf(*one.plan);
  return text + (shortage.empty() ? ": fits, " + bytesText(neededOnEveryRank(*one.plan, "device"))
                                  : ": does not fit: " + shortage);
}

uint64_t lackingBytes(const Plan &plan) {
  const std::optional<FitSpace> space = tightSpace(plan);
  return space ? space->needed - space->room : 0;
}

std::string settingThatHelps(const Plan &plan) {
  const std::optional<FitSpace> space = tightSpace(plan);
  return space ? memorySetting(plan, *space->role, space->space) : "";
}

std::string lackOf(const FitCase &one) {
  const std::optional<FitSpace> space = one.refusal.empty() ? tightSpace(*one.plan) : std::nullopt;
  return space ? lackOf(*one.plan, *space) + "; " + enoughOf(*one.plan, *space) : reasonOf(one);
}

std::string remedyOf(const FitCase &one) {
  const std::optional<FitSpace> space = one.refusal.empty() ? tightSpace(*one.plan) : std::nullopt;
  return space ? memoryRemedy(*one.plan, *space->role, space->space) : "";
}

} // namespace ds::report
