//===- NcclCommunicator.h - collectives by NCCL ---------------------------===//
#pragma once

#include "core/Status.h"
#include "runtime/comm/Communicator.h"
#include "runtime/comm/nccl/NcclConnection.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

namespace ds::runtime {

/// Enqueues the steps of NcclSteps.h on the stream of the collective.
class NcclCommunicator final : public Communicator {
public:
  explicit NcclCommunicator(std::unique_ptr<NcclConnection> connection) : connection_(std::move(connection)) {}

  uint32_t rank() const noexcept override { return connection_->index(); }
  uint32_t size() const noexcept override { return uint32_t(connection_->members().size()); }
  Status run(const Collective &collective) noexcept override;
  WireBytes wireBytes() const noexcept override;

private:
  const std::unique_ptr<NcclConnection> connection_;
  std::array<std::atomic<uint64_t>, collectiveKinds> wireBytes_{};
};

} // namespace ds::runtime
