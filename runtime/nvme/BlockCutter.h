//===- BlockCutter.h - which submissions a read or write becomes ----------===//
#pragma once

#include "runtime/nvme/Block.h"

#include <cstdint>

namespace ds::runtime {

/// Cuts what a caller wants into blocks that the file takes. For example, bytes 1000 to 2,100,000 in blocks of 1 MiB,
/// with pages of 4096: the page at 0 and the page at 2,097,152 by way of an aligned buffer, and between them 1 MiB at
/// 4096 and the 1,044,480 bytes behind it straight to the caller's memory. If that memory lies askew, all of it goes by
/// way of buffers.
class BlockCutter {
public:
  struct Cut {
    uint64_t offset = 0; ///< in the file, a multiple of the alignment; so are the bytes
    uint64_t bytes = 0;
    bool straight = false; ///< to or from the caller's memory, of which all bytes are
  };

  BlockCutter() = default;
  BlockCutter(const Range &range, const Alignment &alignment, uint64_t blockBytes);

  bool done() const { return at_ >= end_; }
  Cut next();

private:
  uint64_t blockBytes_ = 0, unit_ = 1;
  uint64_t at_ = 0, end_ = 0;                    // whole units
  uint64_t straightBegin_ = 0, straightEnd_ = 0; // of the units that go straight
};

} // namespace ds::runtime
