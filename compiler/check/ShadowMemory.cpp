//===- ShadowMemory.cpp - what is known of every byte of an arena ---------===//
#include "compiler/check/ShadowMemory.h"

#include "compiler/check/meaning/Values.h"
#include "compiler/check/schedule/Layout.h"

#include <algorithm>

namespace ds::check {

std::vector<OperandSegment> cut(const std::vector<OperandSegment> &segments, uint64_t begin, uint64_t bytes) {
  std::vector<OperandSegment> inside = within(segments, begin, begin + bytes);
  for (OperandSegment &one : inside) {
    one.begin -= begin;
    one.end -= begin;
  }
  return inside;
}

void append(std::vector<OperandSegment> &segments, OperandSegment next) {
  OperandSegment *last = segments.empty() ? nullptr : &segments.back();
  if (last && last->end == next.begin && last->value == next.value && last->share == next.share &&
      last->varies == next.varies && last->valueByte + (last->end - last->begin) == next.valueByte &&
      last->contributions == next.contributions)
    last->end = next.end;
  else
    segments.push_back(std::move(next));
}

void ShadowMemory::claim(uint64_t begin, uint64_t end, const Slices &slices) {
  std::vector<std::pair<uint64_t, uint64_t>> gaps;
  uint64_t at = begin;
  own.touching(begin, end, [&](uint64_t first, uint64_t last, const OwnSegment &) {
    if (at < first)
      gaps.emplace_back(at, first);
    at = last;
  });
  if (at < end)
    gaps.emplace_back(at, end);
  for (const auto &[first, last] : gaps)
    common.touching(first, last, [&](uint64_t from, uint64_t to, const Segment &segment) {
      OwnSegment copy{segment, slices};
      copy.readers.clear();
      copy.skip(std::max(from, first) - from);
      own.assign(std::max(from, first), std::min(to, last), std::move(copy));
    });
  own.over(begin, end, [&](uint64_t, uint64_t, OwnSegment &segment) {
    if (!segment.slices.agree(slices) && segment.changed)
      static_cast<Known &>(segment.content) = {.value = Values::other};
    if (!segment.slices.agree(slices) || segment.slices.bytes < slices.bytes)
      segment.slices = slices;
  });
}

} // namespace ds::check
