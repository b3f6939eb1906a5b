//===- MpiChannel.h - messages between processes --------------------------===//
#pragma once

#include "core/Status.h"
#include "runtime/comm/Channel.h"
#include "runtime/comm/mpi/MpiTransport.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mpi.h>
#include <span>
#include <string>

namespace ds::runtime {

/// What both ends of a channel have: pieces of at most 1 GiB, some under way at a time, in order. All channels share a
/// communicator of MPI; a channel's key is the tag of its messages.
class MpiChannel {
public:
  /// `verb`: "send" or "receive".
  MpiChannel(MpiTransport &transport, MPI_Comm communicator, uint32_t peer, uint32_t key, const char *verb,
             const std::string &name);

protected:
  /// Calls start(bytes, count, peer, tag, communicator, request) for each piece and awaits them all.
  template <typename Byte, typename Start>
  Status exchange(std::span<const std::span<Byte>> parts, const char *what, Start start) noexcept;
  std::atomic<uint64_t> bytes_ = 0;

private:
  Status wait(const char *what) noexcept;
  Status failureOf(const char *what) noexcept;

  MpiTransport &transport_;
  const MPI_Comm communicator_;
  const uint32_t peer_, tag_;
  const char *const verb_;
  const std::string name_;
  std::array<MPI_Request, 8> requests_;
  size_t started_ = 0;
  int error_ = MPI_SUCCESS; // of a call that started something
};

class MpiSendingEnd final : public SendingEnd, private MpiChannel {
public:
  using MpiChannel::MpiChannel;
  Status send(std::span<const std::span<const std::byte>> parts, const char *what, void *stream) noexcept override;
  uint64_t sentBytes() const noexcept override { return bytes_; }
};

class MpiReceivingEnd final : public ReceivingEnd, private MpiChannel {
public:
  using MpiChannel::MpiChannel;
  Status receive(std::span<const std::span<std::byte>> parts, const char *what, void *stream) noexcept override;
  uint64_t receivedBytes() const noexcept override { return bytes_; }
};

} // namespace ds::runtime
