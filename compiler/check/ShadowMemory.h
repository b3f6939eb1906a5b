//===- ShadowMemory.h - what is known of every byte of an arena -----------===//
#pragma once

#include "core/IntervalMap.h"
#include "runtime/plan/world/Mesh.h"

#include <cstddef>
#include <cstdint>
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

/// What bytes hold.
struct Content {
  enum Kind {
    Undefined, ///< nothing, or what a kernel left in its scratch
    Written,   ///< in this run, or before it
    Reduced    ///< this rank's part of a sum that the ranks have shared out: other bytes hold the sum
  };
  Kind kind = Undefined;
  uint32_t buffer = UINT32_MAX;
  uint64_t generation = 0; ///< the micro-batch or call that the value belongs to, as its buffer's scope says
  std::vector<Contribution> contributions; ///< sorted; of what a gradient is the sum
  plan::AxisSet varies;                    ///< along these it is not the same on all ranks (Distribution.h)
  uint32_t value = 0;                      ///< of the reference program (Values)
  uint64_t valueByte = 0;                  ///< of that value, or of what was added, where this begins
  bool operator==(const Content &) const = default;
};

/// The history of bytes that have one.
struct Segment {
  Content content;
  bool written = false; ///< in this run: `writer` counts
  Access writer = {};
  std::vector<Access> readers = {}; ///< since then, the last of each queue

  void skip(uint64_t bytes) { content.valueByte += bytes; }
};

/// The bytes of one arena.
using ShadowMemory = IntervalMap<Segment>;

} // namespace ds::check
