//===- SliceRules.cpp - what ranks keep of what they share out ------------===//
#include "compiler/check/SliceRules.h"

#include <algorithm>
#include <cstdint>

namespace ds::check {

namespace {

/// Whether a command computes an op of the forward or backward; an accumulator may well be a slice.
bool computes(const proto::Plan &plan, const proto::Command &command) {
  return command.has_kernel() && std::ranges::any_of(command.reference(), [&](uint32_t number) {
           const proto::ReferenceOp &op = plan.reference().ops(int(number));
           return op.function() != "update" && op.variables_size() == 0;
         });
}

} // namespace

void forgetPartialSums(RankMemory &memory, size_t index) {
  const Instance &instance = memory.instance(index);
  const proto::Command &command = *instance.command;
  if (!command.has_collective() || command.collective().kind() != proto::CollectiveCommand::REDUCE_SCATTER)
    return;
  for (const proto::CollectivePart &part : command.collective().parts()) {
    const Range whole = memory.rangeOf(part.source(), instance.microbatch);
    const Range own = memory.rangeOf(part.target(), instance.microbatch);
    if (part.source().buffer() != part.target().buffer() || !whole.overlaps(own))
      continue;
    memory.shadow(whole.arena).common.over(whole.begin, whole.end, [&](uint64_t begin, uint64_t, Segment &segment) {
      if (own.ranks > 1 || begin < own.begin || begin >= own.end)
        segment.content.kind = Content::Reduced;
    });
    memory.shadow(whole.arena).own.over(whole.begin, whole.end, [&](uint64_t, uint64_t, OwnSegment &segment) {
      if (!segment.slices.agree(own.slices))
        segment.content.kind = Content::Reduced;
    });
  }
}

void requireGathered(const RankMemory &memory, const std::vector<Effect> &effects, size_t index) {
  if (!computes(memory.plan(), *memory.instance(index).command))
    return;
  for (const Effect &effect : effects)
    if (effect.reads && effect.operand->rank_stride() == 0 &&
        !memory.sharedAlong(memory.bufferOf(*effect.operand)).empty())
      memory.refuse("value", index,
                    "reads the slice that each rank has of " + memory.nameOf(effect.operand->buffer()) +
                        ", where all ranks need the whole of what was gathered");
}

} // namespace ds::check
