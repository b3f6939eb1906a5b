//===- Replay.cpp - what a run does to memory -----------------------------===//
#include "compiler/check/Replay.h"

#include "compiler/check/EffectRules.h"
#include "compiler/check/RankReplay.h"
#include "compiler/check/schedule/Layout.h"
#include "runtime/plan/Groups.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

namespace ds::check {

namespace {

struct Slices {
  uint64_t stride = 0;
  uint32_t communicator = 0;
  std::set<uint64_t> ends; ///< of all operands in the buffer
};

/// Of a role's ranks, by coordinate: those at which a slice meets the ends of other ranges of the buffer in a way of
/// its own, and one between each two of them. Every other coordinate is as one of these (docs/checker.md).
std::vector<uint32_t> representativeRanks(const Slices &slices, const std::map<uint64_t, uint32_t> &ranks) {
  std::set<uint64_t> coordinates = {ranks.begin()->first, ranks.rbegin()->first};
  for (uint64_t end : slices.ends)
    for (uint64_t c :
         {end / slices.stride, end / slices.stride - (end % slices.stride == 0 && end >= slices.stride ? 1 : 0)})
      coordinates.insert(c);
  std::vector<uint32_t> chosen;
  auto next = ranks.begin();
  for (uint64_t c : coordinates) {
    if (next != ranks.end() && next->first < c)
      chosen.push_back(next->second); // one between
    next = ranks.lower_bound(c);
    if (next != ranks.end() && next->first == c)
      chosen.push_back((next++)->second);
  }
  return chosen;
}

/// Buffers that ranks reach by slices.
std::map<uint32_t, Slices> slicedBuffers(const proto::Plan &plan, const proto::Role &role) {
  std::map<uint32_t, Slices> buffers;
  std::map<uint32_t, std::set<uint64_t>> ends;
  for (const proto::Routine &routine : role.routines())
    for (const proto::Command &command : routine.commands())
      for (const Effect &effect : effectsOf(command)) {
        const proto::Operand &operand = *effect.operand;
        if (operand.rank_stride() > 0)
          buffers[operand.buffer()] = {operand.rank_stride(), operand.communicator(), {}};
        else
          ends[operand.buffer()].insert({operand.byte_offset(), operand.byte_offset() + byteCount(operand)});
      }
  for (auto &[index, slices] : buffers) {
    slices.ends = ends[index];
    for (const Member &member : Layout(plan, role.buffers(int(index)), 0).within(0, role.buffers(int(index)).bytes()))
      slices.ends.insert({member.begin, member.end});
  }
  return buffers;
}

Range rangeOf(const proto::Buffer &buffer) {
  uint64_t first = buffer.offset(), last = first; // of all slots
  for (uint64_t offset : buffer.slot_offsets()) {
    first = std::min(first, offset);
    last = std::max(last, offset);
  }
  return {buffer.arena(), first, last + buffer.bytes()};
}

/// The instances that use each buffer, so that following a few bytes costs no look at all commands.
std::vector<std::vector<size_t>> usersOf(const proto::Role &role, const Timeline &timeline) {
  std::vector<std::vector<size_t>> users(size_t(role.buffers_size()));
  for (size_t i = 0; i < timeline.instances.size(); ++i)
    for (const Effect &effect : effectsOf(*timeline.instances[i].command))
      if (std::vector<size_t> &known = users[effect.operand->buffer()]; known.empty() || known.back() != i)
        known.push_back(i);
  return users;
}

/// Those that use a buffer of which some bytes lie in one of `ranges`.
std::vector<size_t> usersOf(const std::vector<Range> &ranges, const proto::Role &role,
                            const std::vector<std::vector<size_t>> &users) {
  std::set<size_t> found;
  for (int b = 0; b < role.buffers_size(); ++b)
    if (std::ranges::any_of(ranges, [&](const Range &one) { return one.overlaps(rangeOf(role.buffers(b))); }))
      found.insert(users[size_t(b)].begin(), users[size_t(b)].end());
  return {found.begin(), found.end()};
}

/// Buffers between which bytes of a rank's slice pass: the two ends of a copy from or to what ranks reach by slices, or
/// a file, where its state may lie; and of an update on the host the operands that are such ends, and state.
std::vector<std::set<uint32_t>> passages(const proto::Role &role, const std::map<uint32_t, Slices> &sliced) {
  std::vector<std::set<uint32_t>> joined;
  std::set<uint32_t> ends;
  std::vector<const proto::Command *> updates;
  for (const proto::Routine &routine : role.routines())
    for (const proto::Command &command : routine.commands()) {
      if (role.queues(int(command.queue())).kind() == proto::Queue::HOST)
        updates.push_back(&command);
      const proto::CopyCommand &copy = command.copy(); // of buffer 0 to itself, where it is none
      const std::set<uint32_t> both = {copy.source().buffer(), copy.target().buffer()};
      const bool isOfFile = role.queues(int(command.queue())).kind() == proto::Queue::IO;
      if (!command.has_copy() ||
          (!isOfFile && std::ranges::none_of(both, [&](uint32_t one) { return sliced.contains(one); })))
        continue;
      ends.insert(both.begin(), both.end());
      joined.push_back(both);
    }
  for (const proto::Command *update : updates) {
    std::set<uint32_t> &buffers = joined.emplace_back();
    for (const Effect &effect : effectsOf(*update))
      if (const uint32_t buffer = effect.operand->buffer();
          ends.contains(buffer) || role.buffers(int(buffer)).scope() == proto::Buffer::PLAN)
        buffers.insert(buffer);
  }
  return joined;
}

/// The bytes of a buffer, and of those to which they pass and from which they come back.
std::vector<Range> rangesFrom(uint32_t buffer, const proto::Role &role, const std::vector<std::set<uint32_t>> &joined) {
  std::set<uint32_t> reached = {buffer};
  for (size_t before = 0; before != reached.size();) {
    before = reached.size();
    for (const std::set<uint32_t> &some : joined)
      if (std::ranges::any_of(some, [&](uint32_t one) { return reached.contains(one); }))
        reached.insert(some.begin(), some.end());
  }
  std::vector<Range> ranges;
  for (uint32_t one : reached)
    ranges.push_back(rangeOf(role.buffers(int(one))));
  return ranges;
}

/// Coordinates of a group's ranks that the role has.
std::map<uint64_t, uint32_t> coordinatesOf(const proto::Plan &plan, const proto::Role &role, uint32_t communicator) {
  std::map<uint64_t, uint32_t> ranks; // by coordinate
  for (uint32_t rank : plan::groupRanks(plan, communicator, role.ranks(0)))
    for (int i = 0; i + 1 < role.ranks_size(); i += 2)
      if (rank >= role.ranks(i) && rank <= role.ranks(i + 1))
        ranks[plan::groupCoordinate(plan, communicator, rank)] = rank;
  return ranks;
}

/// Follows, for each way in which another rank's slices of a buffer may meet other ranges, the bytes of that buffer.
void replaySlices(const RoleContext &context) {
  const std::vector<std::vector<size_t>> users = usersOf(context.role(), context.timeline());
  const std::map<uint32_t, Slices> sliced = slicedBuffers(context.plan, context.role());
  const std::vector<std::set<uint32_t>> joined = passages(context.role(), sliced);
  for (const auto &[index, slices] : sliced) {
    const std::vector<Range> ranges = rangesFrom(index, context.role(), joined);
    const std::vector<size_t> some = usersOf(ranges, context.role(), users);
    for (uint32_t rank :
         representativeRanks(slices, coordinatesOf(context.plan, context.role(), slices.communicator))) {
      if (rank == context.role().ranks(0))
        continue; // followed in every byte
      RankMemory memory(context, rank, &ranges);
      RankReplay replay(memory);
      for (size_t i : some)
        replay.execute(i);
      replay.finish();
    }
  }
}

const proto::Program *programOf(const proto::Role &role, const std::string &name) {
  for (const proto::Program &program : role.programs())
    if (program.name() == name)
      return &program;
  return nullptr;
}

} // namespace

void replay(const proto::Plan &plan, Meaning &meaning, const std::string &program, const JointTimeline &joint) {
  const StateChanges changes(plan, meaning.values(), program);
  Messages messages;
  std::vector<RoleSchedule> schedules;
  std::vector<RoleContext> contexts;
  std::vector<std::unique_ptr<RankMemory>> memories;
  std::vector<RankReplay> replays;
  schedules.reserve(size_t(plan.roles_size())); // contexts point to them
  for (uint32_t r = 0; r < uint32_t(plan.roles_size()); ++r) {
    const proto::Role &role = plan.roles(int(r));
    const proto::Program *own = programOf(role, program);
    if (!own)
      throw Refusal{"progress", "role " + role.name() + " has no program " + program +
                                    ", but other roles have; ranks run a program together"};
    schedules.emplace_back(role, *own, joint.timelines[r]);
    contexts.push_back({plan, meaning, changes, joint, messages, memories, r, *own, schedules.back()});
    memories.push_back(std::make_unique<RankMemory>(contexts.back(), role.ranks(0), nullptr));
    replays.emplace_back(*memories.back());
  }
  for (const Step &step : joint.order)
    replays[step.role].execute(step.instance);
  requireEffects(plan, program, replays);
  for (RankReplay &replay : replays)
    replay.finish();
  for (const RoleContext &context : contexts)
    replaySlices(context);
}

} // namespace ds::check
