//===- Replay.cpp - what a run does to memory -----------------------------===//
#include "compiler/check/Replay.h"

#include "compiler/check/EffectRules.h"
#include "compiler/check/RankReplay.h"
#include "compiler/check/TailRules.h"
#include "compiler/check/schedule/Layout.h"
#include "core/IntervalMap.h"
#include "runtime/plan/world/Mesh.h"
#include "runtime/plan/world/Placement.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>

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

void addSlices(std::vector<Slices> &all, uint64_t stride, uint32_t communicator) {
  const auto isSame = [&](const Slices &one) { return one.stride == stride && one.communicator == communicator; };
  if (std::ranges::none_of(all, isSame))
    all.push_back({stride, communicator, {}});
}

/// Buffers that ranks reach by slices, and how: it may be over several communicators.
std::map<uint32_t, std::vector<Slices>> slicedBuffers(const proto::Plan &plan, const proto::Role &role) {
  std::map<uint32_t, std::vector<Slices>> buffers;
  std::map<uint32_t, std::set<uint64_t>> ends;
  for (const proto::Routine &routine : role.routines())
    for (const proto::Command &command : routine.commands())
      for (const Effect &effect : effectsOf(command)) {
        const proto::Operand &operand = *effect.operand;
        if (operand.rank_stride() > 0)
          addSlices(buffers[operand.buffer()], operand.rank_stride(), operand.communicator());
        else
          ends[operand.buffer()].insert({operand.byte_offset(), operand.byte_offset() + byteCount(operand)});
      }
  for (auto &[index, all] : buffers) {
    const proto::Buffer &held = role.buffers(int(plan::stateOf(role, index)));
    for (const Member &member : Layout(plan, held, 0).within(0, held.bytes()))
      ends[index].insert({member.begin, member.end});
    for (Slices &slices : all)
      slices.ends = ends[index];
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

/// Copies from or to what ranks reach by slices, hold a slice of, or have in a file, where a parameter or state may
/// lie; and those that go on from there.
std::vector<std::set<uint32_t>> copiesOfSlices(const proto::Plan &plan, const proto::Role &role,
                                               const std::map<uint32_t, std::vector<Slices>> &sliced) {
  std::vector<std::set<uint32_t>> joined, others;
  std::set<uint32_t> ends;
  for (const proto::Routine &routine : role.routines())
    for (const proto::Command &command : routine.commands())
      if (const proto::CopyCommand &copy = command.copy(); command.has_copy()) {
        const std::set<uint32_t> both = {copy.source().buffer(), copy.target().buffer()};
        others.push_back(both);
        if (role.queues(int(command.queue())).kind() == proto::Queue::IO)
          ends.insert(both.begin(), both.end());
      }
  for (const auto &[buffer, slices] : sliced)
    ends.insert(buffer);
  for (uint32_t buffer = 0; buffer < uint32_t(role.buffers_size()); ++buffer)
    if (plan::holdsWindow(plan, role.buffers(int(buffer))))
      ends.insert(buffer);
  for (size_t before = SIZE_MAX; before != joined.size();) {
    before = joined.size();
    std::erase_if(others, [&](const std::set<uint32_t> &both) {
      if (std::ranges::none_of(both, [&](uint32_t one) { return ends.contains(one); }))
        return false;
      ends.insert(both.begin(), both.end());
      joined.push_back(both);
      return true;
    });
  }
  return joined;
}

/// Buffers between which bytes of a rank's slice pass: the two ends of each such copy; of an update on the host the
/// operands that are such ends, and state; and a buffer and its next, in which the slice lies when a run has ended.
std::vector<std::set<uint32_t>> passages(const proto::Plan &plan, const proto::Role &role,
                                         const std::map<uint32_t, std::vector<Slices>> &sliced) {
  std::vector<std::set<uint32_t>> joined = copiesOfSlices(plan, role, sliced);
  std::set<uint32_t> ends;
  for (const std::set<uint32_t> &both : joined)
    ends.insert(both.begin(), both.end());
  for (uint32_t buffer = 0; buffer < uint32_t(role.buffers_size()); ++buffer)
    if (role.buffers(int(buffer)).has_next_of())
      joined.push_back({buffer, role.buffers(int(buffer)).next_of()});
  std::vector<const proto::Command *> updates;
  for (const proto::Routine &routine : role.routines())
    for (const proto::Command &command : routine.commands())
      if (role.queues(int(command.queue())).kind() == proto::Queue::HOST)
        updates.push_back(&command);
  for (const proto::Command *update : updates) {
    std::set<uint32_t> &buffers = joined.emplace_back();
    for (const Effect &effect : effectsOf(*update))
      if (const uint32_t buffer = effect.operand->buffer();
          ends.contains(buffer) || role.buffers(int(buffer)).scope() == proto::Buffer::PLAN)
        buffers.insert(buffer);
  }
  return joined;
}

/// Buffers that bytes of one pass between, and buffers that share bytes at different times: what is followed of a rank
/// is followed whole. By buffer, the first buffer of its group.
std::vector<uint32_t> groupsOf(const proto::Role &role, const std::vector<std::set<uint32_t>> &joined) {
  std::vector<uint32_t> first(size_t(role.buffers_size()));
  std::iota(first.begin(), first.end(), 0);
  const auto find = [&](uint32_t buffer) {
    while (first[buffer] != buffer)
      buffer = first[buffer] = first[first[buffer]];
    return buffer;
  };
  const auto join = [&](uint32_t a, uint32_t b) { first[std::max(find(a), find(b))] = std::min(find(a), find(b)); };
  for (const std::set<uint32_t> &some : joined)
    for (const uint32_t one : some)
      join(one, *some.begin());
  std::map<uint32_t, IntervalMap<uint32_t>> taken; // by arena: a buffer of the group that has these bytes
  for (uint32_t buffer = 0; buffer < first.size(); ++buffer) {
    const Range range = rangeOf(role.buffers(int(buffer)));
    taken[range.arena].touching(range.begin, range.end,
                                [&](uint64_t, uint64_t, uint32_t other) { join(buffer, other); });
    taken[range.arena].assign(range.begin, range.end, buffer);
  }
  for (uint32_t buffer = 0; buffer < first.size(); ++buffer)
    first[buffer] = find(buffer);
  return first;
}

/// Coordinates of a group's ranks that the role has.
std::map<uint64_t, uint32_t> coordinatesOf(const proto::Plan &plan, const proto::Role &role, uint32_t communicator) {
  std::map<uint64_t, uint32_t> ranks; // by coordinate
  const plan::Group group(plan, communicator);
  for (uint32_t rank : group.ranks(role.ranks(0)))
    for (int i = 0; i + 1 < role.ranks_size(); i += 2)
      if (rank >= role.ranks(i) && rank <= role.ranks(i + 1))
        ranks[group.coordinate(rank)] = rank;
  return ranks;
}

/// Follows, for each way in which another rank's slices of a buffer may meet other ranges, the bytes of that buffer and
/// of those to which they pass.
void replaySlices(const RoleContext &context) {
  const proto::Role &role = context.role();
  const std::vector<std::vector<size_t>> users = usersOf(role, context.timeline());
  const std::map<uint32_t, std::vector<Slices>> sliced = slicedBuffers(context.plan, role);
  const std::vector<uint32_t> groups = groupsOf(role, passages(context.plan, role, sliced));
  std::map<uint32_t, std::set<uint32_t>> ranks; // by group
  for (const auto &[index, all] : sliced)
    for (const Slices &slices : all)
      for (const uint32_t rank : representativeRanks(slices, coordinatesOf(context.plan, role, slices.communicator)))
        if (rank != role.ranks(0)) // followed in every byte
          ranks[groups[index]].insert(rank);
  for (const auto &[group, some] : ranks) {
    std::vector<Range> ranges;
    for (uint32_t buffer = 0; buffer < groups.size(); ++buffer)
      if (groups[buffer] == group)
        ranges.push_back(rangeOf(role.buffers(int(buffer))));
    const std::vector<size_t> instances = usersOf(ranges, role, users);
    for (const uint32_t rank : some) {
      RankMemory memory(context, rank, &ranges);
      RankReplay replay(memory);
      for (const size_t i : instances)
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

std::optional<uint32_t> replay(const proto::Plan &plan, Meaning &meaning, const std::string &program,
                               const JointTimeline &joint, std::optional<uint32_t> one) {
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
    contexts.push_back({plan, meaning, changes, joint, messages, memories, r, *own, schedules.back(), one});
    memories.push_back(std::make_unique<RankMemory>(contexts.back(), role.ranks(0), nullptr));
    replays.emplace_back(*memories.back());
  }
  const auto tail = std::ranges::find_if(joint.order, [&](const Step &step) {
    return contexts[step.role].isInTail(joint.timelines[step.role].instances[step.instance].call);
  });
  for (auto step = joint.order.begin(); step != tail; ++step)
    replays[step->role].execute(step->instance);
  const std::optional<uint32_t> factor = one ? one : requireFactor(memories);
  for (auto step = tail; step != joint.order.end(); ++step)
    replays[step->role].execute(step->instance);
  requireEffects(plan, program, replays);
  for (RankReplay &replay : replays)
    replay.finish();
  for (const RoleContext &context : contexts)
    replaySlices(context);
  return factor;
}

} // namespace ds::check
