//===- PageChecksums.h - whether a page is what was written ---------------===//
#pragma once

#include "core/Crc32c.h"
#include "runtime/nvme/Block.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ds::runtime {

/// The CRC-32C of every page of a file, in memory: 1 GiB for each TiB. Threads may use it on different pages at once.
class PageChecksums {
public:
  /// Of a file of zeros.
  explicit PageChecksums(uint64_t bytes) : sums_(bytes / pageBytes, crc32c(std::array<std::byte, pageBytes>{})) {}

  void record(const Range &pages) noexcept {
    for (uint64_t at = 0; at < pages.bytes; at += pageBytes)
      sums_[(pages.offset + at) / pageBytes] = crc32c(std::span(pages.memory + at, pageBytes));
  }

  /// The offset of the first page that is not what was recorded.
  std::optional<uint64_t> firstDamaged(const Range &pages) const noexcept {
    for (uint64_t at = 0; at < pages.bytes; at += pageBytes)
      if (sums_[(pages.offset + at) / pageBytes] != crc32c(std::span(pages.memory + at, pageBytes)))
        return pages.offset + at;
    return std::nullopt;
  }

private:
  std::vector<uint32_t> sums_;
};

} // namespace ds::runtime
