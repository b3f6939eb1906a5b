//===- NvmeArena.h - an arena in a file -----------------------------------===//
#pragma once

#include "core/Status.h"
#include "runtime/device/Arena.h"
#include "runtime/nvme/NvmeFile.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ds::runtime {

/// The file of one rank's arena in space "nvme".
struct NvmePlace {
  std::string folder;
  uint32_t rank = 0;
  NvmeOptions options;
};

/// Addresses stand for places in a file: nothing lies in memory there, and touching one ends the process. So the rest
/// of the runtime computes addresses in it as in any arena.
class NvmeArena final : public Arena {
public:
  /// Adds `bytes` to the counter as long as it lives. Throws ds::Error where the file cannot be made.
  NvmeArena(const NvmePlace &place, uint64_t bytes, uint64_t alignment, std::atomic<uint64_t> &counter);
  ~NvmeArena() override;
  NvmeArena(const NvmeArena &) = delete;
  NvmeArena &operator=(const NvmeArena &) = delete;

  std::byte *base() const noexcept override { return base_; }
  uint64_t bytes() const noexcept override { return bytes_; }
  uint64_t touchedBytes() const noexcept override { return 0; }
  void pair(uint64_t first, uint64_t second, uint64_t bytes) override;
  /// Moves no byte: the addresses of each stand for the other's place in the file then.
  void exchange(uint64_t first, uint64_t second) noexcept override;

  /// How its file is read and written.
  const std::string &note() const noexcept { return file_.note(); }
  bool holds(const void *address) const noexcept { return address >= base_ && address < base_ + bytes_; }
  // `source` and `target`: addresses that it holds.
  Status read(std::span<std::byte> target, const void *source) noexcept { return file_.read(placeOf(source), target); }
  Status write(void *target, std::span<const std::byte> source) noexcept {
    return file_.write(placeOf(target), source);
  }

private:
  /// Bytes that do not lie where their addresses say, or will not.
  struct Moved {
    uint64_t begin, end; // addresses, from base_ on
    uint64_t place;      // of the first, in the file
  };

  /// The last range that begins at an offset or before it; the end of `moved_` where there is none.
  std::vector<Moved>::iterator rangeAt(uint64_t offset) noexcept;
  uint64_t placeOf(const void *address) noexcept;

  NvmeFile file_;
  const uint64_t bytes_;
  std::atomic<uint64_t> &counter_;
  size_t mappingBytes_;
  void *mapping_;
  std::byte *base_;
  std::vector<Moved> moved_; // ascending, apart
};

} // namespace ds::runtime
