//===- ShadowMemory.h - what is known of every byte of an arena -----------===//
#pragma once

#include "runtime/plan/Mesh.h"

#include <cstdint>
#include <map>
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

/// What bytes hold.
struct Content {
  enum Kind {
    Undefined, ///< nothing, or what a kernel left in its scratch
    Initial,   ///< what was there when the run began
    Written,
    Reduced ///< this rank's part of a sum that the ranks have shared out: other bytes hold the sum
  };
  Kind kind = Undefined;
  uint32_t buffer = UINT32_MAX;
  uint64_t generation = 0; ///< the micro-batch or call that the value belongs to, as its buffer's scope says
  std::vector<Contribution> contributions; ///< sorted; of what a gradient is the sum
  bool updated = false;                    ///< by an optimizer in this run
  plan::AxisSet varies;                    ///< along these it is not the same on all ranks (Distribution.h)
  uint32_t value = 0;                      ///< of the reference program (Values)
  uint64_t valueByte = 0;                  ///< of that value, or of what was added, where this begins
  bool operator==(const Content &) const = default;
};

/// Bytes with one history.
struct Segment {
  uint64_t end = 0;
  Content content;
  bool written = false; ///< in this run: `writer` counts
  Access writer;
  std::vector<Access> readers; ///< since then, the last of each queue
};

/// The bytes of one arena as segments, split where accesses begin and end.
class ShadowMemory {
public:
  explicit ShadowMemory(uint64_t bytes) { segments_[0].end = bytes; }

  /// Calls visit(begin, segment) for the segments of [begin, end), split to fit.
  template <typename Visit> void over(uint64_t begin, uint64_t end, Visit visit) {
    if (const auto it = segments_.find(begin); it != segments_.end() && it->second.end == end)
      return (void)visit(begin, it->second); // as most commands leave them
    split(begin);
    split(end);
    for (auto it = segments_.lower_bound(begin); it != segments_.end() && it->first < end; ++it)
      visit(it->first, it->second);
  }

  /// Makes [begin, end) one segment that `access` has written.
  void write(uint64_t begin, uint64_t end, Content content, const Access &access) {
    if (begin == end)
      return;
    if (const auto it = segments_.find(begin); it != segments_.end() && it->second.end == end) {
      it->second = {end, std::move(content), true, access, {}};
      return;
    }
    split(begin);
    split(end);
    segments_.erase(segments_.lower_bound(begin), segments_.lower_bound(end));
    segments_[begin] = {end, std::move(content), true, access, {}};
  }

private:
  void split(uint64_t at) {
    auto after = segments_.upper_bound(at);
    if (after == segments_.begin())
      return;
    auto it = std::prev(after);
    if (it->first == at || at >= it->second.end)
      return;
    Segment right = it->second;
    right.content.valueByte += at - it->first;
    it->second.end = at;
    segments_[at] = std::move(right);
  }

  std::map<uint64_t, Segment> segments_; // by begin
};

} // namespace ds::check
