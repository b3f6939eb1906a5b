//===- InProcessTransport.h - ranks that are threads of one process -------===//
#pragma once

#include "runtime/comm/Arrivals.h"
#include "runtime/comm/Transport.h"
#include "runtime/comm/inprocess/ByteMover.h"
#include "runtime/device/QueueStanding.h"
#include "runtime/device/RunGuard.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {

class InProcessChannel;
class InProcessGroup;

/// Who holds up these queues, all ranks being here.
Holder whoHoldsUp(const std::vector<const QueueStanding *> &queues);

/// All ranks of the run in this process. Collectives and messages read the other ranks' memory where it lies, on the
/// host or, with another mover, on accelerators.
class InProcessTransport final : public Transport {
public:
  explicit InProcessTransport(uint32_t ranks, MakeByteMover makeMover = makeHostMover);
  ~InProcessTransport() override;

  uint32_t ranks() const noexcept override { return uint32_t(localRanks_.size()); }
  const std::vector<uint32_t> &localRanks() const noexcept override { return localRanks_; }
  std::unique_ptr<Communicator> communicator(uint32_t rank, const std::vector<uint32_t> &members,
                                             uint32_t key) override;
  std::unique_ptr<SendingEnd> sendingEnd(uint32_t from, uint32_t to, uint32_t key, const std::string &name) override;
  std::unique_ptr<ReceivingEnd> receivingEnd(uint32_t from, uint32_t to, uint32_t key,
                                             const std::string &name) override;
  void setTimeout(std::chrono::milliseconds timeout) noexcept override { timeout_ = timeout; }
  void onStop(std::function<void(const Status &)> callback) override;
  void stop(const Status &status) noexcept override;
  Status failure() const noexcept override { return guard_.get(); }
  void setStopFlag(const std::atomic<bool> &) override {} // a process that ends takes all ranks with it

  void copy(uint32_t, uint32_t, std::span<std::byte>) override {} // it is there
  bool anyOf(bool mine) noexcept override { return mine; }
  void requireEqual(const std::string &, uint64_t) override {} // there is only one
  void finish() override {}

  // For its groups and channels.
  RunGuard &guard() noexcept { return guard_; }
  std::chrono::milliseconds timeout() const noexcept { return timeout_.load(); }
  std::unique_ptr<ByteMover> makeMover(uint32_t rank) const { return makeMover_(rank); }

private:
  InProcessChannel &channel(uint32_t from, uint32_t to, uint32_t key, const std::string &name);

  std::vector<uint32_t> localRanks_;
  const MakeByteMover makeMover_;
  std::atomic<std::chrono::milliseconds> timeout_;
  RunGuard guard_;   // before groups and channels, which wait by it
  std::mutex mutex_; // of what follows
  std::function<void(const Status &)> callback_;
  std::map<std::pair<std::vector<uint32_t>, uint32_t>, std::unique_ptr<InProcessGroup>> groups_; // by members and key
  std::map<std::array<uint32_t, 3>, std::unique_ptr<InProcessChannel>> channels_;                // by from, to and key
};

} // namespace ds::runtime
