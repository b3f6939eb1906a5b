//===- TailRules.cpp - what decides whether a tail runs -------------------===//
#include "compiler/check/TailRules.h"

#include <cstdint>
#include <string>

namespace ds::check {

namespace {

/// Throws unless every byte of what the tail asks for is there, and is what every rank has.
void requireThere(RankMemory &memory, const proto::Operand &asked, const std::string &what) {
  const Range range = memory.rangeOf(asked, 0);
  memory.shadow(range.arena).histories(range.begin, range.end, [&](const Segment &segment) {
    const Content &content = segment.content;
    const std::string note = segment.written ? memory.placeOf(segment.writer.instance) + " wrote it" : "";
    if (content.kind == Content::Undefined || content.kind == Content::Reduced || content.buffer != asked.buffer())
      throw Refusal{"value", what + " is not there when the calls before the tail have ended", note};
    if (!content.varies.empty())
      throw Refusal{"meaning", what + " is " + memory.values().name(content.value) + ", which each rank has its own of",
                    note};
  });
}

uint32_t factorOf(RankMemory &memory) {
  const proto::Operand &asked = memory.context.program.tail().unless_one();
  const std::string what = "program " + memory.context.program.name() + ": what its tail asks for in " +
                           memory.nameOf(asked.buffer()) + " of role " + memory.role().name();
  requireThere(memory, asked, what);
  const uint32_t value = memory.valueIn(asked, 0);
  const proto::DType dtype = memory.values().type(value).dtype;
  if (dtype != proto::DTYPE_UNSPECIFIED && dtype != asked.dtype())
    throw Refusal{"meaning", what + " is " + memory.values().name(value) + " in another type than it has"};
  const bool mayBeAny = value == Values::unknown && !memory.context.meaning.isClosed();
  if (mayBeAny || memory.context.meaning.isFactor(value))
    return value;
  throw Refusal{"meaning", what + " is " + memory.values().name(value) +
                               ", by which no update of the reference program multiplies its gradient"};
}

} // namespace

std::optional<uint32_t> requireFactor(const std::vector<std::unique_ptr<RankMemory>> &memories) {
  std::optional<uint32_t> factor;
  for (const std::unique_ptr<RankMemory> &memory : memories) {
    if (!memory->context.program.has_tail())
      continue;
    const uint32_t own = factorOf(*memory);
    if (factor && *factor != own)
      throw Refusal{"meaning", "program " + memory->context.program.name() + ": the tail of role " +
                                   memory->role().name() + " asks for " + memory->values().name(own) +
                                   ", that of role " + memories.front()->role().name() + " for " +
                                   memory->values().name(*factor)};
    factor = own;
  }
  return factor;
}

} // namespace ds::check
