//===- ByteRing.cpp - bytes on their way from memory to the disk ----------===//
#include "runtime/checkpoint/ByteRing.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

namespace ds::runtime {

std::span<std::byte> ByteRing::room(uint64_t most) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return put_ - taken_ < capacity_; });
  const uint64_t at = put_ % capacity_;
  return {&bytes_[at], std::min({most, capacity_ - (put_ - taken_), capacity_ - at})};
}

void ByteRing::put(uint64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    put_ += bytes;
  }
  changed_.notify_one();
}

std::span<const std::byte> ByteRing::content(uint64_t most) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return put_ > taken_; });
  const uint64_t at = taken_ % capacity_;
  return {&bytes_[at], std::min({most, put_ - taken_, capacity_ - at})};
}

void ByteRing::take(uint64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    taken_ += bytes;
  }
  changed_.notify_one();
}

} // namespace ds::runtime
