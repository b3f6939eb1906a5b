//===- RandomValues.h - first values drawn from Philox --------------------===//
#pragma once

#include "core/DType.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace ds::runtime {

/// How a variable is drawn. Every element depends on (seed, variable, its index) alone, so any part can be drawn by
/// itself. The draws are those of step 0 with micro-batch 2^32 - 1, which no step has.
struct RandomValues {
  bool normal = true; ///< else uniform on [mean - deviation, mean + deviation)
  double mean = 0;
  double deviation = 1;
  uint64_t seed = 0;
  uint32_t variable = 0; ///< index in the plan

  /// Writes elements [first, first + count) as floats, those of 16 bits rounded from float32. `threads` share the work,
  /// and change no bit.
  void write(DType dtype, uint64_t first, uint64_t count, std::byte *target, unsigned threads = 1) const;

private:
  void writePart(DType dtype, uint64_t first, uint64_t count, std::byte *target) const;
  /// Elements [4 * block, 4 * block + 4).
  void draw(uint64_t block, double (&values)[4]) const;
};

} // namespace ds::runtime
