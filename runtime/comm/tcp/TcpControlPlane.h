//===- TcpControlPlane.h - processes that find each other by TCP ----------===//
#pragma once

#include "core/Status.h"
#include "runtime/comm/ControlPlane.h"
#include "runtime/comm/FailureNotice.h"
#include "runtime/comm/tcp/Admission.h"
#include "runtime/comm/tcp/Socket.h"
#include "runtime/comm/tcp/TcpStore.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {

/// This process is one rank; rank 0's keeps a store through which all talk. One that ends before finish() ends the
/// others. Made when all have come, after `timeout` at most; throws ds::Error.
class TcpControlPlane final : public ControlPlane {
public:
  TcpControlPlane(const StoreAddress &address, uint32_t rank, uint32_t ranks, std::chrono::milliseconds timeout,
                  const RunKey &key = {});

  uint32_t ranks() const noexcept override { return ranks_; }
  const std::vector<uint32_t> &localRanks() const noexcept override { return localRanks_; }
  void setTimeout(std::chrono::milliseconds timeout) noexcept override { timeout_ = timeout; }
  void onStop(std::function<void(const Status &)> callback) override { failure_.onFailure(std::move(callback)); }
  void stop(const Status &status) noexcept override;
  Status failure() const noexcept override { return failure_.get(); }
  void copy(uint32_t from, uint32_t to, std::span<std::byte> bytes) override;
  bool anyOf(bool mine) noexcept override;
  void requireEqual(const std::string &what, uint64_t digest) override;
  std::vector<uint32_t> missing() const override { return store_.missing(); }
  void finish() override;

private:
  /// The values of all ranks, under a key that is used once. What goes wrong ends the run.
  std::vector<std::byte> gather(std::span<const std::byte> value, const char *what);

  const uint32_t rank_, ranks_;
  const std::vector<uint32_t> localRanks_;
  std::atomic<std::chrono::milliseconds> timeout_;
  FailureNotice failure_;
  uint64_t gathered_ = 0;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> copied_; // pieces, by from and to
  TcpStore store_;                                           // last: its threads use the others
};

} // namespace ds::runtime
