//===- Queue.h - commands in order ----------------------------------------===//
#pragma once

#include "core/Status.h"
#include "kernels/KernelRegistry.h"
#include "runtime/device/CommandRing.h"
#include "runtime/device/QueueStanding.h"
#include "runtime/device/Task.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace ds::runtime {

struct QueueOptions {
  std::string name;
  int workers = 1;     ///< threads that its kernels spread over, the queue's own included
  bool onHost = false; ///< the machine's processors do its work, also where the device is an accelerator
  size_t depth = 1;    ///< submissions that may wait in it
  uint32_t rank = 0;   ///< for errors
  /// How long `finish` watches while nothing on the device begins or ends.
  std::chrono::milliseconds patience = std::chrono::minutes(11);
  CommandRing *ring = nullptr; ///< outlives the queue; where it notes what it does, or nullptr
};

/// Commands run one after another in the order submitted; queues run beside each other. Cf. cudaStream_t, hipStream_t,
/// VkQueue. Everything but `finish` returns at once and allocates nothing.
class Queue {
public:
  virtual ~Queue() = default;
  /// Appends one call's commands. The list must outlive the run; blocks while `depth` submissions wait already.
  virtual void submit(const CommandList &commands, const Call &call) noexcept = 0;
  /// Waits until everything submitted is done, or until something failed on any queue of the device; then what is left
  /// has been dropped. A device on which nothing moves for as long as the queue's patience fails, with a sentence that
  /// says where this queue stands. Cf. cudaStreamSynchronize.
  virtual void finish() noexcept = 0;
  /// Where it stands; nullptr: it does not say.
  virtual const QueueStanding *standing() const noexcept { return nullptr; }

  // For tasks, on their own queue only.

  /// Sets every byte. Cf. cudaMemsetAsync.
  virtual void fill(void *target, uint8_t value, uint64_t bytes) noexcept = 0;
  /// The two may be the same bytes. Cf. cudaMemcpyAsync.
  virtual Status copy(void *target, const void *source, uint64_t bytes) noexcept = 0;
  /// Awaits all that was enqueued and makes `count` bytes readable by the host, moving `bytes` to where it sees them
  /// until the next call. For checks: may allocate.
  virtual Status look(const std::byte *&bytes, uint64_t count) noexcept { return Status::success(); }
  /// The workers of the queue's kernels; nullptr where kernels do not run on the host.
  virtual kernels::Parallel *parallel() noexcept = 0;
  /// The stream that its kernels, collectives and messages are enqueued on; nullptr where they run on the host.
  virtual const kernels::Stream *stream() noexcept { return nullptr; }
  /// Its handle, or nullptr.
  void *streamHandle() noexcept {
    const kernels::Stream *own = stream();
    return own != nullptr ? own->handle : nullptr;
  }
};

} // namespace ds::runtime
