//===- NcclChannel.cpp - messages by NCCL ---------------------------------===//
#include "runtime/comm/nccl/NcclChannel.h"

#include "core/Status.h"
#include "runtime/comm/nccl/NcclConnection.h"

#include <cstddef>
#include <cstdint>
#include <nccl.h>
#include <span>

namespace ds::runtime {
namespace {

/// Calls start(bytes, count, type, peer, communicator, stream) for every part that has bytes; adds them up in `bytes`.
template <typename Byte, typename Start>
Status exchange(NcclConnection &connection, std::span<const std::span<Byte>> parts, const StreamCall &call, Start start,
                std::atomic<uint64_t> &bytes) noexcept {
  const int peer = connection.index() == 0 ? 1 : 0;
  uint64_t sum = 0;
  const Status status = connection.run(call, [&](ncclComm_t communicator) noexcept {
    Status first = connection.accept(ncclGroupStart(), call);
    for (const std::span<Byte> &part : parts) {
      if (first.ok() && !part.empty())
        first = connection.accept(start(part.data(), part.size(), ncclUint8, peer, communicator, call.stream), call);
      sum += part.size();
    }
    const ncclResult_t end = ncclGroupEnd(); // also after a failure: the group is the thread's
    return first.ok() ? connection.settle(end, call) : first;
  });
  if (status.ok())
    bytes += sum;
  return status;
}

} // namespace

Status NcclSendingEnd::send(std::span<const std::span<const std::byte>> parts, const char *what,
                            void *stream) noexcept {
  return exchange(*connection_, parts, {"send", what, cudaStream_t(stream)}, ncclSend, bytes_);
}

Status NcclReceivingEnd::receive(std::span<const std::span<std::byte>> parts, const char *what, void *stream) noexcept {
  return exchange(*connection_, parts, {"receive", what, cudaStream_t(stream)}, ncclRecv, bytes_);
}

} // namespace ds::runtime
