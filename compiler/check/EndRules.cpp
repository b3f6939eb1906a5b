//===- EndRules.cpp - what a run leaves behind ----------------------------===//
#include "compiler/check/EndRules.h"

#include "compiler/check/GradientRules.h"
#include "compiler/check/StateChanges.h"
#include "compiler/check/schedule/Effects.h"
#include "compiler/check/schedule/Layout.h"
#include "runtime/plan/world/Placement.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace ds::check {

namespace {

/// A stretch of one variable's elements at the end of a run.
struct Piece {
  uint32_t buffer, variable;
  uint64_t byte; ///< of the variable, where it begins
};

/// Why what lies there is not what was written into the buffer, or empty.
std::string absentIn(const RankMemory &memory, uint32_t buffer, const Content &content) {
  if (content.buffer == buffer)
    return {};
  return "whose bytes " +
         (content.buffer == UINT32_MAX ? "nothing has written" : memory.nameOf(content.buffer) + " has taken");
}

/// Why it does not hold what it should, or empty.
std::string wrongIn(const RankMemory &memory, const Piece &piece, const Content &content, const Known &held) {
  const proto::Plan &plan = memory.plan();
  const std::string &name = plan.variables(int(piece.variable)).name();
  const StateChanges::Change change = memory.context.changes.of(piece.variable);
  if (const std::string absent = absentIn(memory, piece.buffer, content); !absent.empty())
    return "holds elements of " + name + " " + absent;
  if (!memory.context.changes.isKnown() && change.how != StateChanges::Updated)
    return {}; // a plan by hand that says nothing of the rest
  if (!memory.context.changes.varying(piece.variable).includes(held.varies))
    return "holds elements of " + name + " that are not the same on all ranks";
  if (change.how == StateChanges::Pending)
    if (const std::string why = whyNotPending(memory, held, piece.variable, piece.byte); !why.empty())
      return ", which the next step's update reads, " + why;
  const bool isCarried = change.how == StateChanges::Carried;
  const bool isLasts =
      isCarried || (change.how == StateChanges::Stored && memory.context.changes.isOfMicrobatch(held.value));
  const std::optional<uint64_t> of = RankMemory::microbatchOf(held, content.generation);
  if (isLasts && !of)
    return "holds of " + name + " a sum of several micro-batches or ranks, not what the last micro-batch makes of it";
  const uint64_t left =
      of.value_or(content.generation) + (isCarried ? 0 : 1); // micro-batches whose value may lie there
  if (isLasts && left != memory.context.changes.microbatches())
    return "holds of " + name + " what " +
           (left == 0 ? "was there before the step" : "micro-batch " + std::to_string(left - 1) + " left") +
           ", not what the last one makes of it";
  if (change.how == StateChanges::Stored && mayBe(held.value, change.value))
    return {};
  if (held.value != change.value || held.valueByte != piece.byte)
    return "holds " + memory.values().name(held.value) + " from its byte " + std::to_string(held.valueByte) +
           " on, not " + memory.values().name(change.value) + " from its byte " + std::to_string(piece.byte) +
           " on, as the reference program leaves it";
  return {};
}

/// What lies between the members of a bucket, of which nothing was there before the run.
std::string wrongPadding(const RankMemory &memory, uint32_t index, const Content &content, const Known &held) {
  if (const std::string absent = absentIn(memory, index, content); !absent.empty())
    return "has zeros between variables " + absent;
  Values &values = memory.values();
  if (values.isPadding(held.value) || held.value == values.zero())
    return {};
  return "holds " + values.name(held.value) + " between variables, where zeros are";
}

/// What lies in buffer `place` when the run has ended is what buffer `index` holds when the next one begins.
void requireHeld(RankMemory &memory, uint32_t index, uint32_t place) {
  const proto::Buffer &buffer = memory.role().buffers(int(place));
  const std::vector<Member> members = memory.membersOf(memory.role().buffers(int(index)));
  const plan::AxisSet along = memory.coordinates(memory.sharedAlong(memory.role().buffers(int(index)))).along;
  ShadowMemory &shadow = memory.shadow(buffer.arena());
  const uint64_t first = buffer.offset(), last = first + buffer.bytes();
  const auto require = [&](const Segment &segment, const std::string &wrong) {
    if (!wrong.empty())
      throw Refusal{"coverage",
                    "program " + memory.context.program.name() + ", rank " + std::to_string(memory.rank) +
                        ": at its end " + memory.nameOf(place) + (wrong.starts_with(",") ? "" : " ") + wrong,
                    segment.written ? memory.placeOf(segment.writer.instance) + " wrote it" : ""};
  };
  shadow.common.over(first, last, [&](uint64_t begin, uint64_t end, const Segment &segment) {
    const Contents held = memory.joined({{begin - first, end - first, segment.content}}, buffer.bytes(), along);
    if (held.along != along)
      require(segment, "holds what each rank has a slice of, not the same on all ranks");
    for (const OperandSegment &one : held.segments) {
      uint64_t at = one.begin;
      const auto pad = [&](uint64_t to) {
        if (at < to && place != index)
          require(segment, wrongPadding(memory, place, segment.content, one));
      };
      for (const Member &member : within(members, one.begin, one.end)) {
        pad(member.begin);
        at = member.end;
        Known part = one;
        part.valueByte += member.begin - one.begin;
        require(segment, wrongIn(memory, {place, member.variable, member.firstByte}, segment.content, part));
      }
      pad(one.end);
    }
  });
  shadow.own.touching(first, last, [&](uint64_t begin, uint64_t end, const OwnSegment &own) {
    const bool isShare = !along.empty(); // of which each rank has other members there
    for (const Member &member :
         isShare ? members : within(members, std::max(begin, first) - first, std::min(end, last) - first))
      require(own, own.changed ? "holds elements of " + memory.plan().variables(int(member.variable)).name() +
                                     " that are not the same on all ranks"
                               : "");
  });
}

} // namespace

void requireEnds(RankMemory &memory) {
  const std::map<uint32_t, uint32_t> &nexts = memory.context.schedule.nexts;
  for (uint32_t b = 0; b < uint32_t(memory.role().buffers_size()); ++b)
    if (const proto::Buffer &buffer = memory.role().buffers(int(b)); buffer.has_variable() || buffer.has_bucket()) {
      const auto next = nexts.find(b);
      requireHeld(memory, b, next == nexts.end() ? b : next->second);
    }
}

void requireKept(const RankMemory &memory, const proto::Operand &written, size_t index) {
  if (memory.context.program.name() == "step" || byteCount(written) == 0)
    return;
  const proto::Buffer &held = memory.role().buffers(int(plan::stateOf(memory.role(), written.buffer())));
  const uint64_t first = written.byte_offset();
  const bool isOfRank = !memory.sharedAlong(held).empty() || written.rank_stride() > 0; // each has other members there
  const std::vector<Member> members = memory.membersOf(held);
  if (std::ranges::any_of(
          isOfRank ? members : within(members, first, first + byteCount(written)),
          [&](const Member &member) { return memory.context.changes.of(member.variable).how == StateChanges::Kept; }))
    memory.refuse("coverage", index,
                  "changes " + memory.nameOf(written.buffer()) + "; program " + memory.context.program.name() +
                      " leaves weights and state as they are");
}

} // namespace ds::check
