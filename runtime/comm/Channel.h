//===- Channel.h - messages from one rank to another ----------------------===//
#pragma once

#include "core/Status.h"
#include "runtime/device/Rendezvous.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace ds::runtime {

/// The end of a channel that sends. The k-th message sent is the k-th received; channels are independent of each other,
/// each end belongs to one queue's thread and allocates nothing. `what` names the command in errors and, like the
/// spans, outlives the run. `stream`: cudaStream_t to enqueue on, for ranks on accelerators; nullptr: carried out on
/// the host. A call fails when the transport was stopped, or names the other rank when it does not come in time.
class SendingEnd : public Rendezvous {
public:
  /// Done, or enqueued, when it returns; what is done or enqueued after it may write the parts. Cf. MPI_Isend,
  /// ncclSend.
  virtual Status send(std::span<const std::span<const std::byte>> parts, const char *what, void *stream) noexcept = 0;
  /// Since the beginning, counted with every message.
  virtual uint64_t sentBytes() const noexcept = 0;
};

/// The end that receives.
class ReceivingEnd : public Rendezvous {
public:
  /// Done, or enqueued, when it returns; what comes after it finds the message in the parts. It has as many parts of
  /// the same sizes. Cf. MPI_Irecv, ncclRecv.
  virtual Status receive(std::span<const std::span<std::byte>> parts, const char *what, void *stream) noexcept = 0;
  virtual uint64_t receivedBytes() const noexcept = 0;
};

} // namespace ds::runtime
