//===- GradientStays.cpp - uses of the same bytes of a gradient -----------===//
#include "compiler/passes/offload/GradientStays.h"

#include <algorithm>

using namespace mlir;
using namespace ds;

void ds::addUse(SmallVector<Stay> &stays, Value away, const Use &use) {
  Stay joined{away, use.range(), {}};
  llvm::erase_if(stays, [&](const Stay &stay) {
    if (stay.away != away || !stay.range.overlaps(use.range()))
      return false;
    joined.range = {std::min(joined.range.begin, stay.range.begin), std::max(joined.range.end, stay.range.end)};
    llvm::append_range(joined.uses, stay.uses);
    return true;
  });
  llvm::stable_sort(joined.uses, [](const Use &a, const Use &b) {
    Operation *first = a.command, *second = b.command;
    return first != second && first->isBeforeInBlock(second);
  });
  joined.uses.push_back(use);
  stays.push_back(std::move(joined));
}

SmallVector<Bytes> ds::gapsIn(Bytes range, SmallVector<Bytes> parts) {
  llvm::stable_sort(parts, [](const Bytes &a, const Bytes &b) { return a.begin < b.begin; });
  SmallVector<Bytes> gaps;
  for (const Bytes &part : parts) {
    if (part.begin > range.begin)
      gaps.push_back({range.begin, std::min(part.begin, range.end)});
    range.begin = std::max(range.begin, part.end);
    if (range.begin >= range.end)
      return gaps;
  }
  gaps.push_back(range);
  return gaps;
}
