//===- RankMemory.cpp - what the arenas of one rank hold in a run ---------===//
#include "compiler/check/RankMemory.h"

#include "compiler/check/Distribution.h"
#include "compiler/check/schedule/Effects.h"
#include "compiler/check/schedule/Layout.h"
#include "runtime/plan/run/ProgramLives.h"
#include "runtime/plan/world/Mesh.h"

#include <algorithm>

namespace ds::check {

RankMemory::RankMemory(const RoleContext &context, uint32_t rank, const std::vector<Range> *followed)
    : context(context), rank(rank), followed_(followed) {
  for (const proto::Arena &arena : role().arenas())
    shadows_.emplace_back().assign(0, arena.bytes(), {});
  for (int b = 0; b < role().buffers_size(); ++b)
    if (const proto::Buffer &buffer = role().buffers(b);
        (buffer.has_variable() || buffer.has_bucket()) &&
        isFollowed({buffer.arena(), buffer.offset(), buffer.offset() + buffer.bytes()}))
      setInitial(uint32_t(b));
}

void RankMemory::setInitial(uint32_t index) {
  const proto::Buffer &buffer = role().buffers(int(index));
  Content content;
  content.kind = Content::Written;
  content.buffer = index;
  content.value = values().padding();
  ShadowMemory &shadow = shadows_[buffer.arena()];
  shadow.assign(buffer.offset(), buffer.offset() + buffer.bytes(), {content});
  for (const Member &member : Layout(plan(), buffer, rank).within(0, buffer.bytes()))
    shadow.over(buffer.offset() + member.begin, buffer.offset() + member.end,
                [&](uint64_t, uint64_t, Segment &segment) {
                  segment.content.value = values().variable(member.variable);
                  segment.content.varies = context.changes.varying(member.variable);
                  segment.content.valueByte = member.firstByte;
                });
}

uint64_t RankMemory::offsetIn(const proto::Operand &operand) const {
  return plan::operandOffset(plan(), operand, rank);
}

Range RankMemory::rangeOf(const proto::Operand &operand, uint64_t microbatch) const {
  const proto::Buffer &buffer = bufferOf(operand);
  const uint64_t begin = plan::slotOffset(buffer, microbatch) + offsetIn(operand);
  return {buffer.arena(), begin, begin + byteCount(operand)};
}

uint64_t RankMemory::generationOf(const proto::Buffer &buffer, const Instance &instance) {
  switch (buffer.scope()) {
  case proto::Buffer::SLOT:
    return instance.microbatch;
  case proto::Buffer::CALL:
    return instance.call;
  default:
    return 0;
  }
}

std::vector<OperandSegment> RankMemory::segmentsOf(const proto::Operand &operand, uint64_t skip, uint64_t bytes,
                                                   uint64_t microbatch) {
  const Range range = rangeOf(operand, microbatch);
  const uint64_t first = range.begin + skip;
  const bool carried = isCarried(bufferOf(operand));
  std::vector<OperandSegment> segments;
  if (isFollowed(range))
    shadows_[range.arena].over(first, first + bytes, [&](uint64_t begin, uint64_t end, const Segment &segment) {
      const Content &content = segment.content;
      segments.push_back(
          {begin - first, end - first, content.contributions, content.value, content.valueByte, content.varies});
      // What the micro-batch before has made of it is what this one finds there.
      if (uint32_t &value = segments.back().value; carried && content.generation == microbatch && microbatch > 0)
        value = value == values().storedIn(bufferOf(operand).variable())
                    ? values().variable(bufferOf(operand).variable())
                    : std::min<uint32_t>(value, Values::other);
    });
  return segments;
}

std::vector<OperandSegment> RankMemory::segmentsOf(const proto::Operand &operand, uint64_t microbatch) {
  return segmentsOf(operand, 0, byteCount(operand), microbatch);
}

uint32_t RankMemory::valueIn(const proto::Operand &operand, uint64_t microbatch) {
  const std::vector<OperandSegment> segments = segmentsOf(operand, microbatch);
  if (std::ranges::all_of(segments, [](const OperandSegment &one) { return one.value == Values::unknown; }))
    return Values::unknown;
  for (const OperandSegment &segment : segments)
    if (segment.value != segments[0].value || segment.valueByte != segment.begin)
      return Values::other;
  // What a step has stored in a variable that outlives it is what the next one finds there.
  const proto::Buffer &buffer = bufferOf(operand);
  const bool isStored =
      buffer.has_variable() && !isCarried(buffer) && segments[0].value == values().storedIn(buffer.variable());
  return isStored ? values().variable(buffer.variable()) : segments[0].value;
}

std::vector<OperandSegment> Scattered::of(const proto::Plan &plan, uint32_t rank, uint64_t bytes) const {
  const uint64_t first = plan::Group(plan, communicator).coordinate(rank) * bytes;
  std::vector<OperandSegment> slice;
  for (OperandSegment segment : whole) {
    const uint64_t begin = std::max(segment.begin, first), end = std::min(segment.end, first + bytes);
    if (begin >= end)
      continue;
    segment.valueByte += begin - segment.begin;
    segment.begin = begin - first;
    segment.end = end - first;
    slice.push_back(std::move(segment));
  }
  return slice;
}

void RankMemory::refuse(const char *rule, size_t index, const std::string &sentence, const std::string &note,
                        std::optional<size_t> other) const {
  const bool several = plan().roles_size() > 1 || role().ranks_size() != 2 || role().ranks(0) != role().ranks(1);
  const std::string place = placeOf(index) + (several ? ", rank " + std::to_string(rank) : "");
  std::vector<plan::CommandPlace> places;
  for (const size_t one : other ? std::vector{index, *other} : std::vector{index})
    places.push_back({context.index, context.program.name(), instance(one).call, instance(one).index});
  throw Refusal{rule, place + ": " + sentence, note, place, places};
}

} // namespace ds::check
