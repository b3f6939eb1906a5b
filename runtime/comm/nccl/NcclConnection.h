//===- NcclConnection.h - one communicator of NCCL ------------------------===//
#pragma once

#include "core/RunningClock.h"
#include "core/Status.h"
#include "runtime/comm/cuda/Progress.h"
#include "runtime/comm/nccl/CallNames.h"

#include <cstddef>
#include <cstdint>
#include <cuda_runtime_api.h>
#include <mutex>
#include <nccl.h>
#include <span>
#include <string>
#include <vector>

namespace ds::runtime {

class NcclTransport;

/// What a stream is told to do: "all_gather" of "h.0".
struct StreamCall {
  const char *verb, *what;
  cudaStream_t stream;
};

/// A communicator of NCCL that does not block, and what is known of it: who is in it, how far the stream has come. Made
/// by all members together, in the same order; throws ds::Error. One queue's thread runs it; the transport's watchdog
/// looks at it and may take the communicator away to abort it.
class NcclConnection {
public:
  /// `members`: ranks of the run, of which this is the one at `index`; `name`: "ranks 0, 1" or "channel forward".
  NcclConnection(NcclTransport &transport, std::vector<uint32_t> members, uint32_t index, std::string name);
  ~NcclConnection();
  NcclConnection(const NcclConnection &) = delete;
  NcclConnection &operator=(const NcclConnection &) = delete;

  const std::vector<uint32_t> &members() const noexcept { return members_; }
  uint32_t index() const noexcept { return index_; }

  /// Calls enqueue(communicator) between the marks that the watchdog looks at.
  template <typename Enqueue> Status run(const StreamCall &call, Enqueue &&enqueue) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (Status status = begin(call); !status.ok())
      return status;
    if (Status status = enqueue(communicator_); !status.ok())
      return status;
    return end(call);
  }

  // Within run() only:
  /// What a call within a group returned.
  Status accept(ncclResult_t code, const StreamCall &call) const noexcept;
  /// What the end of a group returned: waits until NCCL has enqueued the group.
  Status settle(ncclResult_t code, const StreamCall &call) const noexcept;
  Status checkCuda(cudaError_t code, const StreamCall &call) const noexcept;

  void registerMemory(std::span<std::byte> memory);

  // For the watchdog.

  /// Why the run cannot go on, or success.
  Status examine(RunningClock::Time now) noexcept;
  /// "in all_gather of h.0 (ranks 0, 1)" to `text`; returns whether the stream is in something.
  bool describe(std::string &text) const;
  uint64_t begun() const noexcept { return progress_->begun; }
  /// Whoever calls this aborts it.
  ncclComm_t takeAway() noexcept;

private:
  void connect();
  void finalize() noexcept;
  Status begin(const StreamCall &call) noexcept;
  Status end(const StreamCall &call) noexcept;
  uint32_t rank() const noexcept { return members_[index_]; }
  Status failure(const char *verb, const char *what, ncclResult_t code) const noexcept;

  NcclTransport &transport_;
  const std::vector<uint32_t> members_;
  const uint32_t index_;
  const std::string name_;
  std::mutex mutex_;                  // of communicator_, which NCCL leaves to us
  ncclComm_t communicator_ = nullptr; // nullptr once it has been taken away
  std::vector<void *> registrations_;
  Progress *progress_ = nullptr; // host memory that the device writes
  CallNames names_;
  Overdue overdue_;
};

} // namespace ds::runtime
