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
};

} // namespace ds::runtime
