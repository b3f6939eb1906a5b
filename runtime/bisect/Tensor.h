//===- Tensor.h - what two plans are compared by --------------------------===//
#pragma once

#include "core/DType.h"

#include <compare>
#include <cstdint>

namespace ds::runtime {

/// A tensor of the reference program in a run, the same number whatever the plan. Ordered as one device would compute
/// them, so the least key that differs is the first wrong tensor.
struct TensorKey {
  enum Phase { Microbatch, Update, End }; ///< End: what a step leaves in variables
  static constexpr int64_t input = -1;    ///< as `op`: a graph input

  uint64_t step = 0; ///< from 1; 0 with phase End: first values
  Phase phase = Microbatch;
  uint64_t microbatch = 0; ///< of the step, over all data-parallel ranks; 0 in other phases
  int64_t op = input;      ///< of the reference program of plan A
  bool isVariable = false; ///< what `index` counts: variables of plan A, or results of the op (or inputs)
  uint32_t index = 0;

  auto operator<=>(const TensorKey &) const = default;
};

/// Which command of which rank wrote; of phase End: which rank held.
struct Writer {
  static constexpr uint32_t none = UINT32_MAX;

  uint32_t rank = 0, routine = none, command = none;
  uint64_t microStep = 0;

  auto operator<=>(const Writer &) const = default;
};

/// Elements [first, first + count) of a tensor of so many.
struct Piece {
  uint64_t first = 0, count = 0, elements = 0;
  DType dtype = DType::F32;
  Writer writer;
  bool isAgain = false; ///< by the tail of a run, instead of what the calls before it wrote
  uint64_t digest = 0;
};

} // namespace ds::runtime
