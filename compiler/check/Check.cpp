//===- Check.cpp - the rules, in the order in which they build on each other --===//
#include "compiler/check/Check.h"

#include "compiler/check/PlacementRules.h"
#include "compiler/check/Replay.h"
#include "compiler/check/meaning/CallRules.h"
#include "compiler/check/meaning/Delays.h"
#include "compiler/check/meaning/Meaning.h"
#include "compiler/check/schedule/Layout.h"
#include "compiler/check/schedule/Lives.h"
#include "compiler/check/schedule/Refusal.h"
#include "compiler/check/schedule/ShortenSchedule.h"
#include "compiler/check/schedule/Timeline.h"
#include "runtime/plan/format/Lengths.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ds::check {

namespace {

/// The arenas of a space fit the machine, beside what it keeps free.
void checkMemory(const proto::Plan &plan, const proto::Role &role) {
  const proto::Machine &machine = plan.machine();
  for (auto [space, room] : {std::pair{"device", machine.device_memory()}, std::pair{"host", machine.host_memory()}}) {
    uint64_t needed = std::string(space) == "device" ? machine.reserve() : 0;
    for (const proto::Arena &arena : role.arenas())
      if (arena.space() == space) // as far as numbers reach
        needed += std::min(arena.bytes(), std::numeric_limits<uint64_t>::max() - needed);
    if (room > 0 && needed > room)
      throw Refusal{"memory", "role " + role.name() + " needs " + std::to_string(needed) + " bytes of " + space +
                                  " memory; machine " + machine.name() + " has " + std::to_string(room)};
  }
}

/// What the tail of a program asks for, and where it lies in the first role; empty where it has no tail.
std::string askedOf(const proto::Plan &plan, const std::string &name) {
  const proto::Role &role = plan.roles(0);
  const proto::Program *program = programNamed(role, name);
  if (!program || !program->has_tail())
    return {};
  const uint32_t buffer = program->tail().unless_one().buffer();
  return "buffer " + std::to_string(buffer) + " (" + role.buffers(int(buffer)).name() + ")";
}

/// Proves a run of a program. Of one with a tail both runs: with it, and without it, where what it asks for is 1. Lives
/// are looked at in the whole run, and what it computes in that of `shorter`, which may be the same plan.
void checkProgram(const proto::Plan &plan, const proto::Plan &shorter, const std::string &name, Meaning &meaning) {
  const std::string asked = askedOf(plan, name);
  const auto inCase = [&](const char *what, auto &&check) {
    try {
      return check();
    } catch (Refusal &refusal) {
      refusal.sentence = (asked.empty() ? "" : "where " + asked + what + ": ") + refusal.sentence;
      throw;
    }
  };
  JointTimeline early;
  if (!asked.empty())
    early = inCase(" is 1", [&] { return recordTimeline(shorter, name, /*withTail=*/false); });
  const auto factor = inCase(" is not 1", [&] {
    std::optional<std::set<Meeting>> meetings;
    if (&shorter != &plan) {
      const JointTimeline whole = recordTimeline(plan, name);
      checkLives(plan, name, whole);
      meetings = meetingsOf(whole);
    }
    const JointTimeline joint = recordTimeline(shorter, name);
    if (meetings && *meetings != meetingsOf(joint)) // roles were cut at different places
      throw Refusal{"progress", "roles meet otherwise in a shorter step"};
    const auto found = replay(shorter, meaning, name, joint);
    if (&shorter == &plan)
      checkLives(plan, name, joint);
    return found;
  });
  if (!asked.empty())
    inCase(" is 1", [&] { return replay(shorter, meaning, name, early, factor); });
}

/// A plan says that its updates are stale, if they are, and only then.
void checkStale(const proto::Plan &plan) {
  if (const bool isDelayed = !Delays(plan).empty(); isDelayed != plan.stale())
    throw Refusal{"meaning",
                  isDelayed ? "its updates are of gradients of the step before, but it does not say that it is stale"
                            : "it says that it is stale, but no update is of a gradient of the step before"};
}

/// What holds of a plan whatever its programs do.
void checkParts(const proto::Plan &plan, World world) {
  requireCodes(plan);
  if (world == World::Closed && plan.reference().ops_size() == 0)
    throw Refusal{"meaning", "it has no reference program, so nothing says what its commands should compute"};
  if (world == World::Closed)
    requireCalls(plan);
  checkStale(plan);
  checkPlacements(plan);
  for (const proto::Role &role : plan.roles())
    checkMemory(plan, role);
  checkVariableLayout(plan);
}

Unknown checkPrograms(const proto::Plan &plan, const proto::Plan &shorter, World world) {
  std::set<std::string> programs;
  for (const proto::Role &role : plan.roles())
    for (const proto::Program &program : role.programs())
      programs.insert(program.name());
  Meaning meaning(shorter, world == World::Closed);
  for (const std::string &name : programs)
    checkProgram(plan, shorter, name, meaning);
  return {meaning.unknownCommands(), meaning.unknownBytes()};
}

/// What `check` refuses, or nothing.
std::optional<Finding> findingOf(auto &&check) {
  try {
    check();
    return std::nullopt;
  } catch (const Mismatch &mismatch) { // of the reference program, or of a call wherever it is run
    return Finding{"meaning", mismatch.sentence, {}, {}};
  } catch (const Refusal &refusal) {
    return Finding{refusal.rule, refusal.sentence + (refusal.note.empty() ? "" : "\n  note: " + refusal.note),
                   refusal.place, refusal.places};
  }
}

std::optional<Finding> checkOne(const proto::Plan &plan, World world, bool inFull, Unknown &unknown) {
  if (std::optional<Finding> finding = findingOf([&] { checkParts(plan, world); }))
    return finding;
  const auto findingIn = [&](const proto::Plan &shorter) {
    return findingOf([&] { unknown = checkPrograms(plan, shorter, world); });
  };
  // Where slots share bytes with what begins or ends a step, the shorter run may meet what the whole one does not.
  if (const std::optional<proto::Plan> shorter = inFull ? std::nullopt : shortenSchedule(plan))
    if (!findingIn(*shorter))
      return std::nullopt;
  return findingIn(plan);
}

/// The plan of each size by itself: what all of them share stands in each.
std::optional<Finding> checkSizes(const proto::Plan &plan, World world, bool inFull, Unknown &unknown) {
  const std::vector<uint64_t> sizes = plan::sizesOf(plan);
  if (sizes.empty())
    return checkOne(plan, world, inFull, unknown);
  for (const uint64_t size : sizes) {
    Unknown own;
    if (std::optional<Finding> finding = checkOne(plan::planOfSize(plan, size), world, inFull, own)) {
      finding->sentence = plan.dimension() + "=" + std::to_string(size) + ": " + finding->sentence;
      if (size != plan.size())
        finding->places.clear(); // of another than people see
      return finding;
    }
    unknown = {unknown.commands + own.commands, unknown.bytes + own.bytes};
  }
  return std::nullopt;
}

} // namespace

std::optional<Finding> checkWholePlan(const proto::Plan &plan, World world) {
  Unknown unknown;
  return checkSizes(plan, world, /*inFull=*/true, unknown);
}

std::optional<Finding> checkPlan(const proto::Plan &plan, World world, Unknown *unknown) {
  Unknown own;
  return checkSizes(plan, world, /*inFull=*/false, unknown ? *unknown : own);
}

} // namespace ds::check
