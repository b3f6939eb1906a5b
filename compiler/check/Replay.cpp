//===- Replay.cpp - what a run does to memory --------------------------------===//
#include "compiler/check/Replay.h"

#include "compiler/check/Run.h"
#include "runtime/plan/Groups.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace ds::check {

namespace {

/// Coordinates at which a slice of `stride` bytes meets the ends of other ranges of the buffer in a way of its own, and
/// one between each two of them: every other coordinate is as one of these (docs/checker.md).
std::set<uint64_t> tellingCoordinates(const std::set<uint64_t> &ends, uint64_t stride, uint64_t ranks) {
  std::set<uint64_t> telling = {0, ranks - 1};
  for (uint64_t end : ends)
    for (uint64_t c : {end / stride, end / stride - (end % stride == 0 && end >= stride ? 1 : 0)})
      telling.insert(std::min(c, ranks - 1));
  std::set<uint64_t> between;
  for (auto it = telling.begin(); std::next(it) != telling.end(); ++it)
    if (*std::next(it) > *it + 1)
      between.insert(*it + 1);
  telling.merge(between);
  return telling;
}

struct Slices {
  uint64_t stride = 0;
  uint32_t communicator = 0;
  std::set<uint64_t> ends; ///< of all operands in the buffer
};

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
  return {buffer.arena(), buffer.offset(),
          buffer.offset() + (buffer.slots() - 1) * buffer.slot_stride() + buffer.bytes()};
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

/// Those that use a buffer of which some bytes lie in `range`.
std::vector<size_t> usersOf(const Range &range, const proto::Role &role,
                            const std::vector<std::vector<size_t>> &users) {
  std::set<size_t> found;
  for (int b = 0; b < role.buffers_size(); ++b)
    if (const Range other = rangeOf(role.buffers(b));
        other.arena == range.arena && other.begin < range.end && range.begin < other.end)
      found.insert(users[size_t(b)].begin(), users[size_t(b)].end());
  return {found.begin(), found.end()};
}

} // namespace

void replay(const proto::Plan &plan, Meaning &meaning, const proto::Role &role, const proto::Program &program,
            const Timeline &timeline) {
  std::vector<size_t> all(timeline.instances.size());
  std::iota(all.begin(), all.end(), size_t(0));
  const RoleOrder order(plan, role, program, timeline);
  Run(plan, meaning, role, program, timeline, order, role.ranks(0), nullptr).play(all);
  const std::vector<std::vector<size_t>> users = usersOf(role, timeline);
  for (const auto &[index, slices] : slicedBuffers(plan, role)) {
    const Range range = rangeOf(role.buffers(int(index)));
    const std::vector<size_t> some = usersOf(range, role, users);
    const uint64_t ranks = plan::groupSize(plan, slices.communicator);
    const std::set<uint64_t> telling = tellingCoordinates(slices.ends, slices.stride, ranks);
    for (uint32_t rank : plan::groupRanks(plan, slices.communicator, role.ranks(0)))
      if (const uint64_t c = plan::groupCoordinate(plan, slices.communicator, rank); c > 0 && telling.contains(c))
        Run(plan, meaning, role, program, timeline, order, rank, &range).play(some);
  }
}

} // namespace ds::check
