//===- BlockCutter.cpp - which submissions a read or write becomes --------===//
#include "runtime/nvme/BlockCutter.h"

#include "runtime/nvme/Block.h"

#include <algorithm>
#include <cstdint>

namespace ds::runtime {

BlockCutter::BlockCutter(const Range &range, const Alignment &alignment, uint64_t blockBytes)
    : blockBytes_(blockBytes), unit_(alignment.offset) {
  if (range.bytes == 0)
    return;
  at_ = roundDown(range.offset, unit_);
  end_ = roundUp(range.end(), unit_);
  const uint64_t begin = roundUp(range.offset, unit_), end = roundDown(range.end(), unit_);
  const auto address = reinterpret_cast<uintptr_t>(range.memory) + (begin - range.offset);
  if (begin >= end || address % alignment.memory != 0) {
    straightBegin_ = straightEnd_ = end_;
    return;
  }
  straightBegin_ = begin;
  straightEnd_ = end;
}

BlockCutter::Cut BlockCutter::next() {
  Cut cut{.offset = at_, .bytes = 0, .straight = at_ >= straightBegin_ && at_ < straightEnd_};
  const uint64_t until = cut.straight ? straightEnd_ : at_ < straightBegin_ ? straightBegin_ : end_;
  cut.bytes = std::min(blockBytes_, until - at_);
  at_ += cut.bytes;
  return cut;
}

} // namespace ds::runtime
