//===- EventRing.h - which recorded event stands for a value --------------===//
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace ds::runtime {

/// A counter that streams raise is a few events recorded in turn, so that waiting for an old value need not wait for
/// the newest. Says which of them to record and which to wait for; the events are somebody else's.
class EventRing {
public:
  static constexpr size_t places = 8;

  /// The place to record for `value`; nothing where the counter is as high already.
  std::optional<size_t> record(uint64_t value) {
    if (count_ > 0 && value <= values_[(count_ - 1) % places])
      return std::nullopt;
    values_[count_ % places] = value;
    return count_++ % places;
  }

  /// The place recorded first, of those still kept, that stands for `value` or more; nothing if none was.
  std::optional<size_t> find(uint64_t value) const {
    for (uint64_t i = count_ - std::min<uint64_t>(count_, places); i < count_; ++i)
      if (values_[i % places] >= value)
        return i % places;
    return std::nullopt;
  }

  void clear() { count_ = 0; }

private:
  std::array<uint64_t, places> values_{}; // rising, from the oldest
  uint64_t count_ = 0;                    // recorded since the beginning
};

} // namespace ds::runtime
