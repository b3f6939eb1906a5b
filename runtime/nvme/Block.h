//===- Block.h - what one submission moves --------------------------------===//
#pragma once

#include "core/FilePage.h"

#include <cstddef>
#include <cstdint>

namespace ds::runtime {

/// The unit in which a file is written and checked: what is less is read, merged and written back.
constexpr uint64_t pageBytes = filePage;

enum class Direction { Read, Write };

/// Bytes of the file, and as many of memory.
struct Range {
  uint64_t offset = 0;
  std::byte *memory = nullptr; ///< only read where the direction is Write
  uint64_t bytes = 0;

  uint64_t end() const { return offset + bytes; }
};

/// One submission.
struct Block {
  Direction direction = Direction::Read;
  Range range;
};

/// What submissions have to be multiples of.
struct Alignment {
  uint64_t offset = 1; ///< and the number of bytes; 1 or pageBytes
  uint64_t memory = 1;
};

constexpr uint64_t roundDown(uint64_t value, uint64_t unit) { return value / unit * unit; }
constexpr uint64_t roundUp(uint64_t value, uint64_t unit) { return roundDown(value + unit - 1, unit); }

} // namespace ds::runtime
