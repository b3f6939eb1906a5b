//===- NvmeFaults.h - what tests make go wrong ----------------------------===//
#pragma once

#include "runtime/nvme/Block.h"

#include <cstdint>

namespace ds::runtime {

/// Stands between a file and the system. Called by all threads that read and write.
class NvmeFaults {
public:
  virtual ~NvmeFaults() = default;
  /// Before each submission: how many bytes of the block move, or -errno and nothing is submitted.
  virtual int64_t allowed(const Block &block) noexcept = 0;
  /// An errno with which the system refuses rings; 0: it does as it likes.
  virtual int ringRefusal() noexcept { return 0; }
};

} // namespace ds::runtime
