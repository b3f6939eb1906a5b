//===- RepeatedOffsets.h - a place for buffers that live again and again --===//
#pragma once

#include "compiler/scheduling/OffsetProblem.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ds::scheduling {

/// An OffsetProblem in which a buffer has several lives and lies at one offset in all of them: the scratch of a routine
/// that is called again, a copy of a value that micro-batches take in turns.
struct RepeatedProblem {
  struct Buffer {
    int64_t bytes;
    int64_t turn = 0;  // of a value's copies, which one it is; 0 where there is one
    int64_t block = 0; // buffers with which it may be kept together; 0: none
  };
  struct Life {
    size_t buffer;
    int64_t begin, end; // [begin, end)
  };
  std::vector<Buffer> buffers; // each has a life
  std::vector<Life> lives;     // of one buffer, apart
  int64_t alignment = 64;

  /// Why the input makes no sense, or nothing. Run before anything else here.
  std::optional<std::string> check() const;
  /// Why `offsets`, one a buffer, is wrong, or nothing. Knows no algorithm.
  std::optional<std::string> verify(std::span<const int64_t> offsets) const;
  /// Most bytes live at once: no arena can be smaller.
  int64_t lowerBound() const;
  int64_t arenaBytes(std::span<const int64_t> offsets) const;
  /// Every life as a buffer of its own.
  OffsetProblem unfolded() const;
};

/// What an arena is looked for, in bytes.
struct Wanted {
  int64_t enough = 0;                                  // one of no more is good enough
  int64_t below = std::numeric_limits<int64_t>::max(); // once none is proven to be smaller, any will do
};

/// First fit in several orders, each a few rounds in which what comes to lie above the bound moves to the front; the
/// fewer, the more buffers there are. Ends where no offsets are proven to be better. The same problem gives the same
/// offsets. Needs check() to have passed.
std::vector<int64_t> assignRepeated(const RepeatedProblem &problem, Wanted wanted = {});

/// The same with all buffers of a block as one, in which each has its place: far fewer to place where many
/// micro-batches have as many values each. Buffers of a block have one life each.
std::vector<int64_t> assignInBlocks(const RepeatedProblem &problem, Wanted wanted = {});

} // namespace ds::scheduling
