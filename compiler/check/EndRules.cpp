//===- EndRules.cpp - what a run leaves behind ----------------------------===//
#include "compiler/check/EndRules.h"

#include "compiler/check/StateChanges.h"
#include "compiler/check/schedule/Effects.h"
#include "compiler/check/schedule/Layout.h"

#include <algorithm>
#include <string>

namespace ds::check {

namespace {

/// A stretch of one variable's elements at the end of a run.
struct Piece {
  uint32_t buffer, variable;
  uint64_t byte; ///< of the variable, where it begins
};

/// Why it does not hold what it should, or empty.
std::string wrongIn(const RankMemory &memory, const Piece &piece, const Content &content) {
  const proto::Plan &plan = memory.plan();
  const std::string &name = plan.variables(int(piece.variable)).name();
  const StateChanges::Change change = memory.context.changes.of(piece.variable);
  if (content.kind != Content::Initial && content.buffer != piece.buffer)
    return "holds elements of " + name + " whose bytes " +
           (content.buffer == UINT32_MAX ? "something" : memory.nameOf(content.buffer)) + " has taken";
  if (change.how == StateChanges::Updated && !content.updated)
    return "holds elements of " + name + " that no optimizer has updated";
  if (!memory.context.changes.isKnown())
    return {}; // a plan by hand that says nothing of the rest
  const std::string &held = memory.values().name(content.value);
  if (change.how == StateChanges::Counted && content.value != change.value)
    return ", which counts updates, holds " + held;
  if (change.how == StateChanges::Kept && content.updated)
    return "holds elements of " + name + " that an optimizer has updated, which the reference program does not";
  if (content.ownOfRank && change.how != StateChanges::Averaged)
    return "holds elements of " + name + " that are not the same on all ranks";
  const bool mayBeUnknown = change.how == StateChanges::Stored || !memory.followsAll();
  if (mayBeUnknown && mayBe(content.value, change.value))
    return {};
  if (content.value != change.value || content.valueByte != piece.byte)
    return "holds " + held + " from its byte " + std::to_string(content.valueByte) + " on, not " + name +
           " from its byte " + std::to_string(piece.byte) + " on, as the reference program leaves it";
  return {};
}

/// The byte of `buffer`'s arena that the piece begins at is `begin`.
void requireMember(RankMemory &memory, uint32_t index, const Member &member) {
  const proto::Buffer &buffer = memory.role().buffers(int(index));
  const uint64_t first = buffer.offset() + member.begin;
  memory.shadow(buffer.arena()).over(first, buffer.offset() + member.end, [&](uint64_t begin, const Segment &segment) {
    const Piece piece{index, member.variable, member.firstByte + begin - first};
    if (const std::string why = wrongIn(memory, piece, segment.content); !why.empty())
      throw Refusal{"coverage",
                    "program " + memory.context.program.name() + ", rank " + std::to_string(memory.rank) +
                        ": at its end " + memory.nameOf(index) + (why.starts_with(",") ? "" : " ") + why,
                    segment.written ? memory.placeOf(segment.writer.instance) + " wrote it" : ""};
  });
}

} // namespace

void requireEnds(RankMemory &memory) {
  for (int b = 0; b < memory.role().buffers_size(); ++b) {
    const proto::Buffer &buffer = memory.role().buffers(b);
    if (buffer.scope() == proto::Buffer::PLAN &&
        memory.isFollowed({buffer.arena(), buffer.offset(), buffer.offset() + buffer.bytes()}))
      for (const Member &member : Layout(memory.plan(), buffer, memory.rank).within(0, buffer.bytes()))
        requireMember(memory, uint32_t(b), member);
  }
}

void requireKept(const RankMemory &memory, const proto::Operand &written, size_t index) {
  if (memory.context.program.name() == "step" || byteCount(written) == 0)
    return;
  const Layout layout(memory.plan(), memory.bufferOf(written), memory.rank);
  const std::vector<Member> members = layout.within(memory.offsetIn(written), byteCount(written));
  if (std::ranges::any_of(members, [&](const Member &member) {
        return memory.context.changes.of(member.variable).how == StateChanges::Kept;
      }))
    memory.refuse("coverage", index,
                  "changes " + memory.nameOf(written.buffer()) + "; program " + memory.context.program.name() +
                      " leaves weights and state as they are");
}

} // namespace ds::check
