//===- ByteRing.h - bytes on their way from memory to the disk ------------===//
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

namespace ds::runtime {

/// A stream of bytes between two threads, of which at most `capacity` are under way. What one has put is taken in the
/// same order. Its memory is allocated once, and touched as far as it is used.
class ByteRing {
public:
  explicit ByteRing(uint64_t capacity)
      : capacity_(capacity), bytes_(std::make_unique_for_overwrite<std::byte[]>(capacity)) {}

  /// Empty again, from its first byte on; while no thread uses it.
  void restart() { put_ = taken_ = 0; }

  /// Where the next bytes go, at least one and at most `most`; waits until there is room.
  std::span<std::byte> room(uint64_t most);
  void put(uint64_t bytes);

  /// The next bytes, at least one and at most `most`; waits until there are some. They hold until they are taken.
  std::span<const std::byte> content(uint64_t most);
  void take(uint64_t bytes);

private:
  const uint64_t capacity_;
  const std::unique_ptr<std::byte[]> bytes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t put_ = 0, taken_ = 0; // since the restart
};

} // namespace ds::runtime
