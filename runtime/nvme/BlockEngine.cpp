//===- BlockEngine.cpp - blocks between memory and a file -----------------===//
#include "runtime/nvme/BlockEngine.h"

#include "runtime/nvme/Block.h"
#include "runtime/nvme/NvmeFaults.h"

#include <cassert>
#include <cerrno>
#include <cstdint>
#include <sys/types.h>
#include <unistd.h>

namespace ds::runtime {

void BlockEngine::submit(unsigned tag, const Block &block) noexcept {
  Block part = block;
  if (faults_) {
    const int64_t allowed = faults_->allowed(block);
    if (allowed <= 0)
      return endNow(tag, allowed);
    part.range.bytes = uint64_t(allowed);
  }
  start(tag, part);
}

BlockEngine::Ended BlockEngine::wait() noexcept {
  if (ended_.empty())
    return await();
  const Ended ended = ended_.back();
  ended_.pop_back();
  return ended;
}

void PlainEngine::start(unsigned tag, const Block &block) noexcept {
  const auto [offset, memory, bytes] = block.range;
  const ssize_t moved = block.direction == Direction::Read ? ::pread(file_, memory, bytes, off_t(offset))
                                                           : ::pwrite(file_, memory, bytes, off_t(offset));
  endNow(tag, moved < 0 ? -errno : moved);
}

BlockEngine::Ended PlainEngine::await() noexcept {
  assert(false && "a plain block ends where it starts");
  return {};
}

} // namespace ds::runtime
