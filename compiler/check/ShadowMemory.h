//===- ShadowMemory.h - what is known of every byte of an arena -----------===//
//
// Ranks of a role run the same program. All that differs between them is which slice of a buffer is theirs. So one
// memory stands for them all, whatever their number: where a rank has its share of something, the memory knows what all
// of them have, side by side.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/IntervalMap.h"
#include "runtime/plan/world/Mesh.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace ds::check {

/// Who touched bytes: a command of a run.
struct Access {
  uint32_t queue = 0;
  uint64_t position = 0;
  size_t instance = 0;
};

/// A micro-batch whose gradients a sum holds, and what value was added (Values).
struct Contribution {
  uint64_t microbatch;
  plan::AxisSet summed; ///< over the ranks of these axes; empty: of this rank alone
  uint32_t value;
  auto operator<=>(const Contribution &) const = default;
};

struct Share;

/// What bytes are, wherever they lie.
struct Known {
  std::vector<Contribution> contributions = {}; ///< sorted; of what a gradient is the sum
  uint32_t value = 0;                           ///< of the reference program (Values)
  uint64_t valueByte = 0;                       ///< of that value, or of what was added, where this begins
  plan::AxisSet varies = {};                    ///< along these it is not the same on all ranks (Distribution.h)
  std::shared_ptr<const Share> share = nullptr; ///< instead: the rank's share of this, from its byte `valueByte` on
};

/// Bytes that hold one thing, counted from the first byte of an operand.
struct OperandSegment : Known {
  uint64_t begin, end;
  OperandSegment(uint64_t begin, uint64_t end, Known known = {}) : Known(std::move(known)), begin(begin), end(end) {}

  void skip(uint64_t bytes) {
    begin += bytes;
    valueByte += bytes;
  }
};

/// What ranks have side by side: the rank at coordinate c along some axes has `bytes` bytes of it, from c * bytes on.
struct Share {
  plan::AxisSet along;
  uint64_t bytes;
  std::vector<OperandSegment> whole;
};

/// What an operand holds: on each rank or, if `along` is not empty, on all ranks along these axes side by side.
struct Contents {
  std::vector<OperandSegment> segments = {};
  plan::AxisSet along = {};
};

/// Those in [begin, begin + bytes), counted from `begin` on.
std::vector<OperandSegment> cut(const std::vector<OperandSegment> &segments, uint64_t begin, uint64_t bytes);

/// Adds a segment to those before it; goes on with the last one where that is of the same.
void append(std::vector<OperandSegment> &segments, OperandSegment next);

/// What bytes of an arena hold.
struct Content : Known {
  enum Kind {
    Undefined, ///< nothing, or what a kernel left in its scratch
    Written,   ///< in this run, or before it
    Reduced    ///< this rank's part of a sum that the ranks have shared out: other bytes hold the sum
  };
  Kind kind = Undefined;
  uint32_t buffer = UINT32_MAX;
  uint64_t generation = 0; ///< the micro-batch that it was written for; in a buffer of calls, the call
};

/// The history of bytes that have one.
struct Segment {
  Content content = {};
  bool written = false; ///< in this run: `writer` counts
  Access writer = {};
  std::vector<Access> readers = {}; ///< since then, the last of each queue

  void skip(uint64_t bytes) { content.valueByte += bytes; }
};

/// Ranks along some axes reach slices of a buffer, each its own: one begins `stride` bytes behind the other.
struct Slices {
  uint64_t stride = 0;
  plan::AxisSet along = {};
  uint64_t begin = 0, bytes = 0; ///< of the first rank's
  bool operator==(const Slices &) const = default;
  /// Whether ranks have bytes in common with others of the same alone: what is one's by these is its own by those.
  bool agree(const Slices &other) const {
    const auto isWithin = [](const Slices &a, const Slices &b) {
      return a.begin >= b.begin && a.begin + a.bytes <= b.begin + b.stride;
    };
    return stride == other.stride && along == other.along && (isWithin(*this, other) || isWithin(other, *this));
  }
};

/// The same of a byte in a slice, on the rank whose slice it lies in.
struct OwnSegment : Segment {
  Slices slices = {};
  bool changed = false; ///< that rank has written it, so others have something else there
};

/// The bytes of one arena. A command that all ranks run on the same bytes finds them in `common`; one on which each
/// uses its own slice, in `own`, where they lie from the first such use until all are written again.
struct ShadowMemory {
  IntervalMap<Segment> common;
  IntervalMap<OwnSegment> own;

  /// Takes bytes into `own` as slices of ranks. What others wrote there as slices is nobody's any more.
  void claim(uint64_t begin, uint64_t end, const Slices &slices);
  /// Calls visit(segment) for every segment that has a history of these bytes.
  template <typename Visit> void histories(uint64_t begin, uint64_t end, Visit visit) const {
    common.touching(begin, end, [&](uint64_t, uint64_t, const Segment &segment) { visit(segment); });
    own.touching(begin, end, [&](uint64_t, uint64_t, const Segment &segment) { visit(segment); });
  }
  /// Calls visit(begin, end, segment) for the bytes as all ranks find them or, of slices, each rank its own.
  template <typename Visit> void over(uint64_t begin, uint64_t end, bool isOwn, Visit visit) {
    isOwn ? own.over(begin, end, visit) : common.over(begin, end, visit);
  }
};

} // namespace ds::check
