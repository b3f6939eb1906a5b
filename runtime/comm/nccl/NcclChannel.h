//===- NcclChannel.h - messages by NCCL -----------------------------------===//
#pragma once

#include "core/Status.h"
#include "runtime/comm/Channel.h"
#include "runtime/comm/nccl/NcclConnection.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace ds::runtime {

/// The parts of a message are sent in one group, each as bytes; empty ones are not sent. A communicator of two: the
/// sender is its rank 0.
class NcclSendingEnd final : public SendingEnd {
public:
  explicit NcclSendingEnd(std::unique_ptr<NcclConnection> connection) : connection_(std::move(connection)) {}
  Status send(std::span<const std::span<const std::byte>> parts, const char *what, void *stream) noexcept override;
  uint64_t sentBytes() const noexcept override { return bytes_; }

private:
  const std::unique_ptr<NcclConnection> connection_;
  std::atomic<uint64_t> bytes_ = 0;
};

class NcclReceivingEnd final : public ReceivingEnd {
public:
  explicit NcclReceivingEnd(std::unique_ptr<NcclConnection> connection) : connection_(std::move(connection)) {}
  Status receive(std::span<const std::span<std::byte>> parts, const char *what, void *stream) noexcept override;
  uint64_t receivedBytes() const noexcept override { return bytes_; }

private:
  const std::unique_ptr<NcclConnection> connection_;
  std::atomic<uint64_t> bytes_ = 0;
};

} // namespace ds::runtime
