//===- SliceRules.cpp - what ranks keep of sums that they share out -------===//
#include "compiler/check/SliceRules.h"

#include <cstdint>

namespace ds::check {

void forgetPartialSums(RankMemory &memory, size_t index) {
  const Instance &instance = memory.instance(index);
  const proto::Command &command = *instance.command;
  if (!command.has_collective() || command.collective().kind() != proto::CollectiveCommand::REDUCE_SCATTER)
    return;
  for (const proto::CollectivePart &part : command.collective().parts()) {
    const Range whole = memory.rangeOf(part.source(), instance.microbatch);
    const Range own = memory.rangeOf(part.target(), instance.microbatch);
    if (part.source().buffer() != part.target().buffer() || !whole.overlaps(own) || !memory.isFollowed(whole))
      continue;
    const auto forget = [&](uint64_t begin, uint64_t end) {
      if (begin < end)
        memory.shadow(whole.arena).over(begin, end, [](uint64_t, Segment &segment) {
          segment.content.kind = Content::Reduced;
        });
    };
    forget(whole.begin, own.begin);
    forget(own.end, whole.end);
  }
}

} // namespace ds::check
