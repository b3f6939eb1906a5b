//===- Check.cpp - the rules, in the order in which they build on each other --===//
#include "compiler/check/Check.h"

#include "compiler/check/Replay.h"
#include "compiler/check/StateChanges.h"
#include "compiler/check/meaning/CallRules.h"
#include "compiler/check/meaning/Delays.h"
#include "compiler/check/meaning/Meaning.h"
#include "compiler/check/schedule/Effects.h"
#include "compiler/check/schedule/Layout.h"
#include "compiler/check/schedule/Lives.h"
#include "compiler/check/schedule/Refusal.h"
#include "compiler/check/schedule/Residents.h"
#include "compiler/check/schedule/ShortenSchedule.h"
#include "compiler/check/schedule/Timeline.h"
#include "runtime/plan/format/Lengths.h"
#include "runtime/plan/run/Simulator.h"
#include "runtime/plan/world/Mesh.h"
#include "runtime/plan/world/RolePeers.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ds::check {

namespace {

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

void checkLivesOf(const proto::Plan &plan, const std::string &name, const JointTimeline &joint) {
  for (int r = 0; r < plan.roles_size(); ++r)
    for (int program = 0; program < plan.roles(r).programs_size(); ++program)
      if (plan.roles(r).programs(program).name() == name)
        checkLives(plan, plan.roles(r), program, joint.timelines[size_t(r)]);
}

/// Where what the tail of a program asks for lies in the first role, or nothing.
std::optional<std::string> askedOf(const proto::Plan &plan, const std::string &name) {
  const proto::Role &role = plan.roles(0);
  for (const proto::Program &program : role.programs())
    if (program.name() == name && program.has_tail()) {
      const uint32_t buffer = program.tail().unless_one().buffer();
      return "buffer " + std::to_string(buffer) + " (" + role.buffers(int(buffer)).name() + ")";
    }
  return std::nullopt;
}

/// What `check` refuses, it refuses in one case alone.
auto inCase(const std::string &when, auto &&check) {
  try {
    return check();
  } catch (Refusal &refusal) {
    refusal.sentence = "where " + when + ": " + refusal.sentence;
    throw;
  }
}

/// The plan whose program `name` ends where its tail begins.
proto::Plan withoutTail(proto::Plan plan, const std::string &name) {
  for (proto::Role &role : *plan.mutable_roles())
    for (proto::Program &program : *role.mutable_programs())
      if (program.name() == name && program.has_tail()) {
        const int first = int(program.tail().first_call());
        program.mutable_calls()->DeleteSubrange(first, program.calls_size() - first);
        program.clear_tail();
      }
  return plan;
}

/// The calls before the tail come to their end without it. So what they do can be followed first.
void putTailLast(const proto::Plan &plan, const std::string &name, JointTimeline &joint) {
  std::vector<uint32_t> firstCalls(size_t(plan.roles_size()), UINT32_MAX);
  for (int r = 0; r < plan.roles_size(); ++r)
    for (const proto::Program &program : plan.roles(r).programs())
      if (program.name() == name && program.has_tail())
        firstCalls[size_t(r)] = program.tail().first_call();
  std::ranges::stable_partition(joint.order, [&](const Step &step) {
    return joint.timelines[step.role].instances[step.instance].call < firstCalls[step.role];
  });
}

/// A program with a tail has two runs: without it, where what it asks for is 1, and with it.
void checkBothEnds(const proto::Plan &plan, const std::string &name, const std::string &asked, Meaning &meaning) {
  const proto::Plan before = withoutTail(plan, name);
  const JointTimeline early = inCase(asked + " is 1", [&] { return recordTimeline(before, name); });
  const auto factor = inCase(asked + " is not 1", [&] {
    JointTimeline whole = recordTimeline(plan, name);
    putTailLast(plan, name, whole);
    auto found = replay(plan, meaning, name, whole);
    checkLivesOf(plan, name, whole);
    return found;
  });
  inCase(asked + " is 1", [&] { return replay(plan, meaning, name, early, factor); });
}

Unknown checkPrograms(const proto::Plan &plan, const std::set<std::string> &programs, World world) {
  Meaning meaning(plan, world == World::Closed);
  for (const std::string &name : programs) {
    if (const std::optional<std::string> asked = askedOf(plan, name)) {
      checkBothEnds(plan, name, *asked, meaning);
      continue;
    }
    const JointTimeline joint = recordTimeline(plan, name);
    replay(plan, meaning, name, joint);
    checkLivesOf(plan, name, joint);
  }
  return {meaning.unknownCommands(), meaning.unknownBytes()};
}

/// A plan says that its updates are stale, if they are, and only then.
void checkStale(const proto::Plan &plan) {
  if (const bool isDelayed = !Delays(plan).empty(); isDelayed != plan.stale())
    throw Refusal{"meaning",
                  isDelayed ? "its updates are of gradients of the step before, but it does not say that it is stale"
                            : "it says that it is stale, but no update is of a gradient of the step before"};
}

/// Whether a role has all ranks or none of those that differ along an axis alone.
bool hasWholeGroups(const proto::Plan &plan, const proto::Role &role, uint32_t axis) {
  const uint64_t stride = plan::axisStride(plan.world(), axis), all = stride * plan.world().axes(int(axis)).size();
  for (int i = 0; i + 1 < role.ranks_size(); i += 2)
    if (const uint64_t first = role.ranks(i), last = role.ranks(i + 1); first % all != 0 || (last + 1) % all != 0)
      return false;
  return true;
}

/// What micro-batches change varies as they do, and what outlives a step is no term of a sum.
void checkPlacement(const proto::Plan &plan, const proto::Variable &variable, bool isOwn) {
  const proto::Placement &placement = variable.placement();
  const std::string name = "variable " + variable.name();
  if (plan::varyingAxes(plan.world(), placement) != (isOwn ? plan::batchAxes(plan) : plan::AxisSet()))
    throw Refusal{"meaning",
                  name + (isOwn ? ": each rank changes it by its own micro-batches, but its placement does not say "
                                  "that it varies as inputs do"
                                : ": its placement says that ranks have other values of it, which the reference "
                                  "program does not make")};
  for (const proto::AxisPlacement &along : placement.axes()) {
    const std::string &axis = plan.world().axes(int(along.axis())).name();
    if (along.has_partial())
      throw Refusal{"meaning", name + ": its placement says that ranks have terms of it, which nothing has added up"};
    if (along.has_shard() && plan::batchAxes(plan).contains(along.axis()))
      throw Refusal{"meaning", name + ": ranks have parts of it along axis " + axis +
                                   ", along which they have samples of their own, so what they make of these parts is "
                                   "no part of one value"};
    for (const proto::Role &role : plan.roles())
      if (along.has_shard() && !hasWholeGroups(plan, role, along.axis()))
        throw Refusal{"coverage", name + ": ranks have parts of it along axis " + axis + ", of which role " +
                                      role.name() + " has some and other roles the rest"};
  }
}

/// Gradients and state lie as the parameter does that is updated by them.
void checkPlacementsOf(const proto::Plan &plan, const proto::ReferenceOp &update) {
  const proto::Variable *parameter = nullptr;
  for (const uint32_t variable : update.variables())
    if (plan.variables(int(variable)).kind() == proto::Variable::PARAMETER)
      parameter = &plan.variables(int(variable));
  for (const uint32_t index : update.variables())
    if (const proto::Variable &variable = plan.variables(int(index));
        parameter && std::ranges::equal(variable.shape(), parameter->shape()) &&
        variable.placement().SerializeAsString() != parameter->placement().SerializeAsString())
      throw Refusal{"meaning", "variable " + variable.name() + ": its placement is not that of " + parameter->name() +
                                   ", which is updated by it"};
}

/// What of a variable and of all that belongs to its parameter ranks share out, they share out alike: an update finds
/// the same elements of each, on every rank.
void checkWindows(const proto::Plan &plan) {
  std::map<uint32_t, std::pair<uint32_t, plan::AxisSet>> known; // by parameter: a bucket of its own, and its axes
  for (int b = 0; b < plan.buckets_size(); ++b) {
    const proto::Bucket &bucket = plan.buckets(b);
    if (!bucket.placement().has_window())
      continue;
    const plan::AxisSet axes = plan::axesOf(plan, bucket.placement().window().communicator());
    for (const proto::BucketMember &member : bucket.members()) {
      const proto::Variable &variable = plan.variables(int(member.variable()));
      const uint32_t parameter = variable.has_of() ? variable.of() : member.variable();
      if (const auto &[first, own] = known.try_emplace(parameter, uint32_t(b), axes).first->second; own != axes)
        throw Refusal{"coverage", "bucket " + bucket.name() + ": ranks share out " + variable.name() +
                                      " along other axes than bucket " + plan.buckets(int(first)).name() +
                                      " has of the same parameter"};
    }
  }
}

void checkPlacements(const proto::Plan &plan) {
  checkWindows(plan);
  if (plan.reference().ops_size() == 0)
    return;
  const std::set<uint32_t> own = changedByMicrobatches(plan);
  for (int v = 0; v < plan.variables_size(); ++v)
    checkPlacement(plan, plan.variables(v), own.contains(uint32_t(v)));
  for (const proto::ReferenceOp &op : plan.reference().ops())
    if (isOptimizer(op))
      checkPlacementsOf(plan, op);
}

std::optional<Finding> check(const proto::Plan &plan, const std::set<std::string> &programs, World world,
                             Unknown &unknown) {
  try {
    if (world == World::Closed && plan.reference().ops_size() == 0)
      throw Refusal{"meaning", "it has no reference program, so nothing says what its commands should compute"};
    if (world == World::Closed)
      requireCalls(plan);
    checkStale(plan);
    checkPlacements(plan);
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

/// Whether every program with a tail comes to its end without it. That the others do, and with it, was simulated when
/// the plan was read.
bool endsWithoutTails(const proto::Plan &plan) {
  plan::RolePeers peers(plan);
  for (const std::string &name : programsOf(plan))
    if (askedOf(plan, name) && plan::simulate(withoutTail(plan, name), name, peers, nullptr))
      return false;
  return true;
}

std::optional<Finding> checkOne(const proto::Plan &plan, World world, Unknown *unknown) {
  const std::optional<proto::Plan> shorter = shortenSchedule(plan);
  if (!shorter || !endsWithoutTails(plan))
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

/// Once for a plan, since the schedule does not matter to it.
std::optional<Finding> checkCodes(const proto::Plan &plan) {
  try {
    requireCodes(plan);
    return std::nullopt;
  } catch (const Mismatch &mismatch) {
    return Finding{"meaning", mismatch.sentence, {}, {}};
  }
}

/// The plan of each size by itself: what all of them share stands in each.
std::optional<Finding> checkEach(const proto::Plan &plan, World world, Unknown *unknown, auto &&checkIt) {
  const std::vector<uint64_t> sizes = plan::sizesOf(plan);
  if (sizes.empty()) {
    std::optional<Finding> finding = checkCodes(plan);
    return finding ? finding : checkIt(plan, world, unknown);
  }
  for (const uint64_t size : sizes) {
    Unknown own;
    const proto::Plan one = plan::planOfSize(plan, size);
    std::optional<Finding> finding = checkCodes(one);
    if (!finding)
      finding = checkIt(one, world, &own);
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
