//===- EndRules.cpp - what a run leaves behind ----------------------------===//
#include "compiler/check/EndRules.h"

#include "compiler/check/EffectRules.h"
#include "compiler/check/GradientRules.h"
#include "compiler/check/StateChanges.h"
#include "compiler/check/schedule/Effects.h"
#include "compiler/check/schedule/Layout.h"
#include "runtime/plan/world/Placement.h"

#include <algorithm>
#include <cstdint>
#include <map>
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
std::string wrongIn(const RankMemory &memory, const Piece &piece, const Content &content) {
  const proto::Plan &plan = memory.plan();
  const std::string &name = plan.variables(int(piece.variable)).name();
  const StateChanges::Change change = memory.context.changes.of(piece.variable);
  if (const std::string absent = absentIn(memory, piece.buffer, content); !absent.empty())
    return "holds elements of " + name + " " + absent;
  if (!memory.context.changes.isKnown() && change.how != StateChanges::Updated)
    return {}; // a plan by hand that says nothing of the rest
  if (!memory.context.changes.varying(piece.variable).includes(content.varies))
    return "holds elements of " + name + " that are not the same on all ranks";
  if (change.how == StateChanges::Pending)
    if (const std::string why = whyNotPending(memory, content, piece.variable, piece.byte); !why.empty())
      return ", which the next step's update reads, " + why;
  if (const uint64_t last = microbatchesOf(plan, memory.context.program.name());
      change.how == StateChanges::Carried && content.generation != last)
    return "holds of " + name + " what " +
           (content.generation == 0 ? "was there before the step"
                                    : "micro-batch " + std::to_string(content.generation - 1) + " left") +
           ", not what the last one makes of it";
  const bool mayBeUnknown = change.how == StateChanges::Stored || !memory.followsAll();
  if (mayBeUnknown && mayBe(content.value, change.value))
    return {};
  if (content.value != change.value || content.valueByte != piece.byte)
    return "holds " + memory.values().name(content.value) + " from its byte " + std::to_string(content.valueByte) +
           " on, not " + memory.values().name(change.value) + " from its byte " + std::to_string(piece.byte) +
           " on, as the reference program leaves it";
  return {};
}

/// Bytes [first, last) of a buffer, each with nothing wrong in it: `wrong(byte, content)` says why.
void requireBytes(RankMemory &memory, uint32_t index, uint64_t first, uint64_t last, auto &&wrong) {
  const proto::Buffer &buffer = memory.role().buffers(int(index));
  const uint64_t start = buffer.offset();
  memory.shadow(buffer.arena())
      .over(start + first, start + last, [&](uint64_t begin, uint64_t, const Segment &segment) {
        if (const std::string why = wrong(begin - start, segment.content); !why.empty())
          throw Refusal{"coverage",
                        "program " + memory.context.program.name() + ", rank " + std::to_string(memory.rank) +
                            ": at its end " + memory.nameOf(index) + (why.starts_with(",") ? "" : " ") + why,
                        segment.written ? memory.placeOf(segment.writer.instance) + " wrote it" : ""};
      });
}

/// What lies between the members of a bucket, of which nothing was there before the run.
void requirePadding(RankMemory &memory, uint32_t index, uint64_t first, uint64_t last) {
  if (first == last)
    return;
  requireBytes(memory, index, first, last, [&](uint64_t, const Content &content) -> std::string {
    if (const std::string absent = absentIn(memory, index, content); !absent.empty())
      return "has zeros between variables " + absent;
    Values &values = memory.values();
    const bool isUnknown = content.value == Values::unknown && !memory.followsAll();
    if (isUnknown || values.isPadding(content.value) || content.value == values.zero())
      return {};
    return "holds " + values.name(content.value) + " between variables, where zeros are";
  });
}

/// What lies in buffer `place` when the run has ended is what buffer `index` holds when the next one begins.
void requireHeld(RankMemory &memory, uint32_t index, uint32_t place) {
  const proto::Buffer &buffer = memory.role().buffers(int(index));
  uint64_t end = 0;
  for (const Member &member : Layout(memory.plan(), buffer, memory.rank).within(0, buffer.bytes())) {
    if (place != index)
      requirePadding(memory, place, end, member.begin);
    requireBytes(memory, place, member.begin, member.end, [&](uint64_t byte, const Content &content) {
      return wrongIn(memory, {place, member.variable, member.firstByte + byte - member.begin}, content);
    });
    end = member.end;
  }
  if (place != index)
    requirePadding(memory, place, end, buffer.bytes());
}

} // namespace

void requireEnds(RankMemory &memory) {
  const std::map<uint32_t, uint32_t> &nexts = memory.context.schedule.nexts;
  for (uint32_t b = 0; b < uint32_t(memory.role().buffers_size()); ++b) {
    const auto next = nexts.find(b);
    const uint32_t place = next == nexts.end() ? b : next->second;
    const proto::Buffer &buffer = memory.role().buffers(int(place));
    const bool holds = memory.role().buffers(int(b)).has_variable() || memory.role().buffers(int(b)).has_bucket();
    if (holds && memory.isFollowed({buffer.arena(), buffer.offset(), buffer.offset() + buffer.bytes()}))
      requireHeld(memory, b, place);
  }
}

void requireKept(const RankMemory &memory, const proto::Operand &written, size_t index) {
  if (memory.context.program.name() == "step" || byteCount(written) == 0)
    return;
  const proto::Buffer &held = memory.role().buffers(int(plan::stateOf(memory.role(), written.buffer())));
  const std::vector<Member> members =
      Layout(memory.plan(), held, memory.rank).within(memory.offsetIn(written), byteCount(written));
  if (std::ranges::any_of(members, [&](const Member &member) {
        return memory.context.changes.of(member.variable).how == StateChanges::Kept;
      }))
    memory.refuse("coverage", index,
                  "changes " + memory.nameOf(written.buffer()) + "; program " + memory.context.program.name() +
                      " leaves weights and state as they are");
}

} // namespace ds::check
