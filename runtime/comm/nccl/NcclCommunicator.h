//===- NcclCommunicator.h - collectives by NCCL ---------------------------===//
#pragma once

#include "core/Status.h"
#include "runtime/comm/Communicator.h"
#include "runtime/comm/nccl/NcclLine.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

namespace ds::runtime {

/// Enqueues the steps of NcclSteps.h on the stream of the collective.
class NcclCommunicator final : public Communicator {
public:
  explicit NcclCommunicator(std::unique_ptr<NcclLine> line) : line_(std::move(line)) {}

  uint32_t rank() const noexcept override { return line_->place(); }
  uint32_t size() const noexcept override { return uint32_t(line_->members().size()); }
  Status run(const Collective &collective) noexcept override;
  WireBytes wireBytes() const noexcept override;

private:
  const std::unique_ptr<NcclLine> line_;
  std::array<std::atomic<uint64_t>, collectiveKinds> wireBytes_{};
};

} // namespace ds::runtime
