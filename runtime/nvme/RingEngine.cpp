//===- RingEngine.cpp - blocks through io_uring ---------------------------===//
#include "runtime/nvme/RingEngine.h"

#include "runtime/nvme/Block.h"
#include "runtime/nvme/BlockEngine.h"
#include "runtime/nvme/NvmeFaults.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <liburing.h>
#include <memory>
#include <string>
#include <time.h>

namespace ds::runtime {
namespace {

constexpr int mostTries = 1000; // of a submission for which the kernel lacks memory just now, a millisecond each

void waitAMillisecond() noexcept {
  const timespec time{.tv_sec = 0, .tv_nsec = 1000000};
  ::nanosleep(&time, nullptr);
}

/// Reads and writes are younger than rings (Linux 5.6 and 5.1).
bool readsAndWrites(io_uring &ring) {
  io_uring_probe *probe = ::io_uring_get_probe_ring(&ring);
  const bool known = probe && io_uring_opcode_supported(probe, IORING_OP_READ) != 0 &&
                     io_uring_opcode_supported(probe, IORING_OP_WRITE) != 0;
  ::io_uring_free_probe(probe);
  return known;
}

} // namespace

RingEngine::RingEngine(int file, unsigned depth, NvmeFaults *faults) : BlockEngine(depth, faults), file_(file) {}

std::unique_ptr<RingEngine> RingEngine::make(int file, unsigned depth, NvmeFaults *faults, std::string &refusal) {
  std::unique_ptr<RingEngine> engine(new RingEngine(file, depth, faults));
  int error = faults ? faults->ringRefusal() : 0;
  if (error == 0)
    error = -::io_uring_queue_init(depth, &engine->ring_, 0);
  if (error != 0) {
    refusal = std::string("io_uring is refused: ") + std::strerror(error);
    return nullptr;
  }
  engine->open_ = true;
  if (readsAndWrites(engine->ring_))
    return engine;
  refusal = "this kernel's io_uring cannot read and write, Linux 5.6 and later can";
  return nullptr;
}

RingEngine::~RingEngine() {
  if (open_)
    ::io_uring_queue_exit(&ring_);
}

void RingEngine::start(unsigned tag, const Block &block) noexcept {
  if (broken_ != 0)
    return endNow(tag, -broken_);
  const auto [offset, memory, bytes] = block.range;
  io_uring_sqe *entry = ::io_uring_get_sqe(&ring_); // there is one: fewer than depth are under way
  if (block.direction == Direction::Read)
    ::io_uring_prep_read(entry, file_, memory, unsigned(bytes), offset);
  else
    ::io_uring_prep_write(entry, file_, memory, unsigned(bytes), offset);
  entry->user_data = tag;
  int taken = 0;
  for (int tries = 0; (taken = ::io_uring_submit(&ring_)) <= 0; ++tries) {
    if (taken == -EINTR)
      continue;
    if ((taken != -EAGAIN && taken != -EBUSY && taken != 0) || tries == mostTries) {
      broken_ = taken == 0 ? EAGAIN : -taken;
      return endNow(tag, -broken_);
    }
    waitAMillisecond();
  }
}

/// Whatever goes wrong, it waits on: until the block has ended, the kernel writes to its memory.
BlockEngine::Ended RingEngine::await() noexcept {
  io_uring_cqe *entry = nullptr;
  while (const int error = ::io_uring_wait_cqe(&ring_, &entry))
    if (error != -EINTR)
      waitAMillisecond();
  const Ended ended{unsigned(entry->user_data), entry->res};
  ::io_uring_cqe_seen(&ring_, entry);
  return ended;
}

} // namespace ds::runtime
