//===- CpuArena.h - an arena in this process's memory ---------------------===//
#pragma once

#include "runtime/device/Arena.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace ds::runtime {

/// Anonymous pages with an unreadable guard page before and after. The kernel gives the pages when they are first
/// touched.
class CpuArena final : public Arena {
public:
  /// Adds `bytes` to the counter as long as it lives. Throws ds::Error naming the arena's space.
  CpuArena(const std::string &space, uint64_t bytes, uint64_t alignment, std::atomic<uint64_t> &counter);
  ~CpuArena() override;
  CpuArena(const CpuArena &) = delete;
  CpuArena &operator=(const CpuArena &) = delete;

  std::byte *base() const noexcept override { return base_; }
  uint64_t bytes() const noexcept override { return bytes_; }
  uint64_t touchedBytes() const noexcept override;

private:
  void *mapping_ = nullptr;
  size_t mappingBytes_ = 0;
  std::byte *base_ = nullptr;
  uint64_t bytes_ = 0;
  std::atomic<uint64_t> &counter_;
};

/// The space of the live arena whose guard page holds `address`, or nullptr. For signal handlers: takes no lock.
const char *guardPageOwner(const void *address) noexcept;

} // namespace ds::runtime
