//===- Bf16Gemm.h - products on a processor's units for bfloat16 ------------===//
#pragma once

#include <cstdint>

namespace ds::kernels {

/// An operand of a product as those units read it: panels of 32 rows of a left operand, or 32 columns of a right one,
/// each in steps of 32 of the depth. What is beyond its edges is zero.
struct Bf16Panels {
  static constexpr int64_t width = 32, depth = 32, stepNumbers = width * depth;

  Bf16Panels(int64_t width_, int64_t depth_)
      : count((width_ + width - 1) / width), steps((depth_ + depth - 1) / depth) {}
  int64_t numbers() const { return count * steps * stepNumbers; }
  int64_t offset(int64_t panel) const { return panel * steps * stepNumbers; }

  int64_t count, steps; ///< panels, and steps of each
};

/// bfloat16 numbers as stored: rows that lie along the depth, or one row for each step of it.
struct Bf16Stored {
  const uint16_t *data;
  int64_t stride; ///< between rows
  bool alongDepth;
};

/// Whether this machine has such units and DS_CPU_ISA lets it use them (Isa.h).
bool hasBf16Units();

/// One panel, of which `width` rows (columns, of a right operand) and `depth` are there.
void packBf16(bool left, Bf16Stored from, int64_t width, int64_t depth, uint16_t *to);

/// Multiplies panels on the thread that makes it, for whose life tile registers are set up where there are some.
class Bf16Unit {
public:
  Bf16Unit();
  ~Bf16Unit();
  Bf16Unit(const Bf16Unit &) = delete;
  Bf16Unit &operator=(const Bf16Unit &) = delete;

  /// sums [32, 32], at a multiple of 64 = a's panel times b's. The order in which an element is summed up depends on
  /// the depth alone. The units take subnormal numbers as zero.
  void multiply(const uint16_t *a, const uint16_t *b, int64_t steps, float *sums) const;
};

} // namespace ds::kernels
