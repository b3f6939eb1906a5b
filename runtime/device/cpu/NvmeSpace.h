//===- NvmeSpace.h - space "nvme" of one rank -------------------------------===//
#pragma once

#include "core/Status.h"
#include "runtime/device/Arena.h"
#include "runtime/device/cpu/NvmeArena.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace ds::runtime {

/// One arena in a file, or none, and what the host's processors do to its bytes and to main memory.
class NvmeSpace {
public:
  /// Without a place there can be no arena.
  explicit NvmeSpace(std::optional<NvmePlace> place) : place_(std::move(place)) {}

  /// The caller's; the space outlives it. Throws ds::Error.
  std::unique_ptr<Arena> createArena(uint64_t bytes, uint64_t alignment);
  uint64_t bytes() const noexcept { return bytes_; }
  /// How its file is kept, as Device::note; empty where there is none.
  std::string note() const;

  /// Whether an address is a place in the file, with nothing to see in memory.
  bool holds(const void *address) const noexcept { return arena_ != nullptr && arena_->holds(address); }
  /// Between memory and memory, or memory and the file; the two may be the same bytes.
  Status copy(void *target, const void *source, uint64_t bytes) noexcept;
  Status fill(void *target, uint8_t value, uint64_t bytes) noexcept;

private:
  const std::optional<NvmePlace> place_;
  NvmeArena *arena_ = nullptr; // the caller's
  std::atomic<uint64_t> bytes_ = 0;
};

} // namespace ds::runtime
