//===- GradientStays.cpp - uses of the same bytes of a gradient -----------===//
#include "compiler/passes/offload/GradientStays.h"

#include <algorithm>

using namespace mlir;
using namespace ds;

void ds::addUse(SmallVector<GradientStay> &stays, Value away, const GradientUse &use) {
  GradientStay joined{away, use.range(), {}};
  llvm::erase_if(stays, [&](const GradientStay &stay) {
    if (stay.away != away || !stay.range.overlaps(use.range()))
      return false;
    joined.range = {std::min(joined.range.begin, stay.range.begin), std::max(joined.range.end, stay.range.end)};
    llvm::append_range(joined.uses, stay.uses);
    return true;
  });
  llvm::stable_sort(joined.uses, [](const GradientUse &a, const GradientUse &b) {
    Operation *first = a.command, *second = b.command;
    return first != second && first->isBeforeInBlock(second);
  });
  joined.uses.push_back(use);
  stays.push_back(std::move(joined));
}

SmallVector<ByteRange> ds::gapsIn(ByteRange range, SmallVector<ByteRange> parts) {
  llvm::stable_sort(parts, [](const ByteRange &a, const ByteRange &b) { return a.begin < b.begin; });
  SmallVector<ByteRange> gaps;
  for (const ByteRange &part : parts) {
    if (part.begin > range.begin)
      gaps.push_back({range.begin, std::min(part.begin, range.end)});
    range.begin = std::max(range.begin, part.end);
    if (range.begin >= range.end)
      return gaps;
  }
  gaps.push_back(range);
  return gaps;
}
