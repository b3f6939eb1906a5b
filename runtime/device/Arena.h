//===- Arena.h - the memory of a rank in one space ------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>

namespace ds::runtime {

/// A block of fixed size; a plan places its buffers at offsets in it. Nothing touches its bytes before the plan's
/// commands and the loading of variables do. Cf. cudaMalloc, cudaHostAlloc.
class Arena {
public:
  virtual ~Arena() = default;
  /// Address of byte 0, aligned as asked. Not for dereferencing where the device does not execute.
  virtual std::byte *base() const noexcept = 0;
  virtual uint64_t bytes() const noexcept = 0;
  /// Its bytes in pages that were ever touched, as the operating system counts them; 0 where nobody counts.
  virtual uint64_t touchedBytes() const noexcept = 0;

  /// Lets the `bytes` from offset `first` on and those from `second` on exchange what they hold, later and often, while
  /// no queue has anything to do. Offsets are of pages of a file (core/FilePage.h), and no read or write but within one
  /// of the two. Of space "nvme" alone.
  virtual void pair(uint64_t first, uint64_t second, uint64_t bytes) {}
  virtual void exchange(uint64_t first, uint64_t second) noexcept {}
};

} // namespace ds::runtime
