//===- Check.cpp - the rules, in the order in which they build on each other --===//
#include "compiler/check/Check.h"

#include "compiler/check/OverflowRules.h"
#include "compiler/check/Replay.h"
#include "compiler/check/meaning/CallRules.h"
#include "compiler/check/meaning/Meaning.h"
#include "compiler/check/schedule/Layout.h"
#include "compiler/check/schedule/Lives.h"
#include "compiler/check/schedule/Refusal.h"
#include "compiler/check/schedule/Residents.h"
#include "compiler/check/schedule/ShortenSchedule.h"
#include "compiler/check/schedule/Timeline.h"
#include "runtime/plan/Lengths.h"

#include <set>

namespace ds::check {

namespace {

void checkMemory(const proto::Plan &plan, const proto::Role &role) {
  const proto::Machine &machine = plan.machine();
  for (auto [space, room] : {std::pair{"device", machine.device_memory()}, std::pair{"host", machine.host_memory()}}) {
    uint64_t needed = std::string(space) == "device" ? machine.reserve() : 0;
    for (const proto::Arena &arena : role.arenas())
      needed += arena.space() == space ? arena.bytes() : 0;
    if (room > 0 && needed > room)
      throw Refusal{"memory", "role " + role.name() + " needs " + std::to_string(needed) + " bytes of " + space +
                                  " memory; machine " + machine.name() + " has " + std::to_string(room)};
  }
}

/// Every parameter that is trained has a role that holds it.
void checkHeld(const proto::Plan &plan) {
  std::set<std::string> held;
  for (const proto::Role &role : plan.roles())
    for (const proto::Buffer &buffer : role.buffers())
      if (buffer.has_variable())
        held.insert(plan.variables(int(buffer.variable())).name());
      else if (buffer.has_bucket()) // slices of all ranks together are the whole
        for (const proto::BucketMember &member : plan.buckets(int(buffer.bucket())).members())
          held.insert(plan.variables(int(member.variable())).name());
  for (const std::string &name : trainedParameters(plan))
    if (!held.contains(name))
      throw Refusal{"coverage", "parameter " + name + " is trained, but no role holds it"};
}

Unknown checkPrograms(const proto::Plan &plan, const std::set<std::string> &programs, World world) {
  Meaning meaning(plan, world == World::Closed);
  for (const std::string &name : programs) {
    const JointTimeline joint = recordTimeline(plan, name);
    replay(plan, meaning, name, joint);
    for (int r = 0; r < plan.roles_size(); ++r)
      for (int program = 0; program < plan.roles(r).programs_size(); ++program)
        if (plan.roles(r).programs(program).name() == name)
          checkLives(plan, plan.roles(r), program, joint.timelines[size_t(r)]);
  }
  return {meaning.unknownCommands(), meaning.unknownBytes()};
}

std::optional<Finding> check(const proto::Plan &plan, const std::set<std::string> &programs, World world,
                             Unknown &unknown) {
  try {
    if (world == World::Closed && plan.reference().ops_size() == 0)
      throw Refusal{"meaning", "it has no reference program, so nothing says what its commands should compute"};
    if (world == World::Closed)
      requireCalls(plan);
    requireOverflowGuards(plan);
    for (const proto::Role &role : plan.roles()) {
      checkMemory(plan, role);
      checkVariableLayout(plan, role);
      checkResidents(role);
    }
    checkHeld(plan);
    unknown = checkPrograms(plan, programs, world);
    return std::nullopt;
  } catch (const Mismatch &mismatch) { // of the reference program, or of a call wherever it is run
    return Finding{"meaning", mismatch.sentence, {}, {}};
  } catch (const Refusal &refusal) {
    return Finding{refusal.rule, refusal.sentence + (refusal.note.empty() ? "" : "\n  note: " + refusal.note),
                   refusal.place, refusal.places};
  }
}

std::set<std::string> programsOf(const proto::Plan &plan) {
  std::set<std::string> programs;
  for (const proto::Role &role : plan.roles())
    for (const proto::Program &program : role.programs())
      programs.insert(program.name());
  return programs;
}

std::optional<Finding> checkOneWhole(const proto::Plan &plan, World world, Unknown *unknown) {
  Unknown counts;
  return check(plan, programsOf(plan), world, unknown ? *unknown : counts);
}

std::optional<Finding> checkOne(const proto::Plan &plan, World world, Unknown *unknown) {
  const std::optional<proto::Plan> shorter = shortenSchedule(plan);
  if (!shorter)
    return checkOneWhole(plan, world, unknown);
  std::optional<Finding> finding = checkOneWhole(*shorter, world, unknown);
  Unknown ofTurned;
  if (const auto turned = finding ? std::nullopt : turnSlots(plan, *shorter))
    finding = check(*turned, {"step"}, world, ofTurned);
  // Where slots share bytes with what begins or ends a step, the shorter run may meet what the whole one does not.
  if (!finding || !checkOneWhole(plan, world, unknown))
    return std::nullopt;
  finding->sentence += " (with " + std::to_string(shorter->training().accumulation_steps()) + " of " +
                       std::to_string(plan.training().accumulation_steps()) + " micro-batches, in the same order)";
  finding->places.clear(); // of the shorter plan
  return finding;
}

/// The plan of each size by itself: what all of them share stands in each.
std::optional<Finding> checkEach(const proto::Plan &plan, World world, Unknown *unknown, auto &&checkIt) {
  const std::vector<uint64_t> sizes = plan::sizesOf(plan);
  if (sizes.empty())
    return checkIt(plan, world, unknown);
  for (const uint64_t size : sizes) {
    Unknown own;
    std::optional<Finding> finding = checkIt(plan::planOfSize(plan, size), world, &own);
    if (finding) {
      finding->sentence = plan.dimension() + "=" + std::to_string(size) + ": " + finding->sentence;
      if (size != plan.size())
        finding->places.clear(); // of another than people see
      return finding;
    }
    if (unknown)
      *unknown = {unknown->commands + own.commands, unknown->bytes + own.bytes};
  }
  return std::nullopt;
}

} // namespace

std::optional<Finding> checkWholePlan(const proto::Plan &plan, World world, Unknown *unknown) {
  return checkEach(plan, world, unknown, checkOneWhole);
}

std::optional<Finding> checkPlan(const proto::Plan &plan, World world, Unknown *unknown) {
  return checkEach(plan, world, unknown, checkOne);
}

} // namespace ds::check
