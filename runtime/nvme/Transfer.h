//===- Transfer.h - one read or write of a file ---------------------------===//
#pragma once

#include "core/Status.h"
#include "runtime/nvme/Block.h"
#include "runtime/nvme/PageChecksums.h"

#include <cstdint>
#include <memory>
#include <string>

namespace ds::runtime {

struct Lane;

/// What all reads and writes of a file have in common.
struct TransferRules {
  std::string file; ///< for sentences: "rank 3's file in /fast"
  Alignment alignment;
  uint64_t blockBytes = 0;
  std::unique_ptr<PageChecksums> checksums; ///< none: pages are believed
};

/// Moves the range with as many blocks under way as the lane holds. When it returns none is, however it went.
Status transfer(const TransferRules &rules, Lane &lane, Direction direction, const Range &range) noexcept;

} // namespace ds::runtime
