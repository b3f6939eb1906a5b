//===- BlockEngine.h - blocks between memory and a file -------------------===//
#pragma once

#include "runtime/nvme/Block.h"

#include <cstdint>
#include <vector>

namespace ds::runtime {

class NvmeFaults;

/// Moves blocks, each under a tag that is below the depth and used by one at a time. One thread at a time. Cf. fio's
/// ioengine.
class BlockEngine {
public:
  /// How a submission ended: the bytes that moved, or -errno.
  struct Ended {
    unsigned tag = 0;
    int64_t result = 0;
  };

  virtual ~BlockEngine() = default;

  /// Begins; the memory is the system's until wait() has returned the tag.
  void submit(unsigned tag, const Block &block) noexcept;
  /// One that has ended. At least one must be under way.
  Ended wait() noexcept;
  unsigned depth() const noexcept { return depth_; } ///< blocks that may be under way

protected:
  BlockEngine(unsigned depth, NvmeFaults *faults) : depth_(depth), faults_(faults) { ended_.reserve(depth); }
  virtual void start(unsigned tag, const Block &block) noexcept = 0;
  virtual Ended await() noexcept = 0;
  /// Without the system, or before start() returns.
  void endNow(unsigned tag, int64_t result) noexcept { ended_.push_back({tag, result}); } // within what is reserved

private:
  const unsigned depth_;
  NvmeFaults *const faults_;
  std::vector<Ended> ended_;
};

/// pread and pwrite, one block after another.
class PlainEngine final : public BlockEngine {
public:
  PlainEngine(int file, NvmeFaults *faults) : BlockEngine(1, faults), file_(file) {}

protected:
  void start(unsigned tag, const Block &block) noexcept override;
  Ended await() noexcept override;

private:
  const int file_;
};

} // namespace ds::runtime
