//===- element_numbers_call.h - the numbers that random elements are drawn by --===//
#pragma once

#include "kernels/Call.h"
#include "kernels/HostDevice.h"

#include <algorithm>
#include <cstdint>

namespace ds::kernels {

/// The number of each element of an operand in the tensor that it is a part of, so that a split tensor has the numbers
/// of the whole one. Attribute `whole` is the tensor's shape, `first` the index there of the part's first element;
/// without them the operand is the whole.
struct ElementNumbers {
  ElementNumbers(const Call &call, const Shape &part);

  bool isWhole() const { return outer == 0 && offset == 0; }
  /// Of element i of the part.
  DS_HOST_DEVICE int64_t at(int64_t i) const {
    int64_t number = offset + i % run, rest = i / run;
    for (int d = outer; d-- > 0; rest /= sizes[d])
      number += rest % sizes[d] * strides[d];
    return number;
  }

  int64_t run = 1; ///< elements of the part that follow one another in the whole
  int64_t offset = 0;
  int outer = 0;                                      ///< dimensions outside of a run
  int64_t sizes[maxRank] = {}, strides[maxRank] = {}; ///< of those
};

/// body(first, count, number) in parallel, for elements [first, first + count) of a part, which have successive
/// numbers.
template <typename Body>
void forEachRun(const CallContext &context, const ElementNumbers &numbers, int64_t elements, Body body) {
  constexpr int64_t grain = 16384; // elements of one piece, a multiple of the four of a Philox block
  const int64_t pieces = piecesOf(numbers.run, grain);
  parallelFor(context, elements == 0 ? 0 : elements / numbers.run * pieces, [&](int64_t piece, int) {
    const int64_t begin = piece % pieces * grain, first = piece / pieces * numbers.run + begin;
    body(first, std::min(grain, numbers.run - begin), uint64_t(numbers.at(first)));
  });
}

} // namespace ds::kernels
