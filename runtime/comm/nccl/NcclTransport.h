//===- NcclTransport.h - ranks that are processes with a GPU each ---------===//
#pragma once

#include "core/RunningClock.h"
#include "core/Status.h"
#include "runtime/comm/ControlPlane.h"
#include "runtime/comm/FailureNotice.h"
#include "runtime/comm/Transport.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace ds::runtime {

class NcclConnection;

/// This process is one rank and has one GPU; NCCL carries collectives and messages, a control plane (MPI or TCP) all
/// else. A thread of its own looks after NCCL, which waits for ever for a rank that does not come: it ends the run when
/// NCCL reports an error or a stream stays in a collective for longer than it may, and aborts every communicator when
/// the run is stopped, so that streams come to an end.
///
/// NCCL sums in orders of its own: results have other bits than on the CPU, though the same on every run with the same
/// ranks, GPUs and NCCL settings.
class NcclTransport final : public Transport {
public:
  /// `gpu`: CUDA's number of this process's.
  NcclTransport(std::unique_ptr<ControlPlane> control, int gpu);
  ~NcclTransport() override;

  uint32_t ranks() const noexcept override { return control_->ranks(); }
  const std::vector<uint32_t> &localRanks() const noexcept override { return control_->localRanks(); }
  std::unique_ptr<Communicator> communicator(uint32_t rank, const std::vector<uint32_t> &members,
                                             uint32_t key) override;
  std::unique_ptr<SendingEnd> sendingEnd(uint32_t from, uint32_t to, uint32_t key, const std::string &name) override;
  std::unique_ptr<ReceivingEnd> receivingEnd(uint32_t from, uint32_t to, uint32_t key,
                                             const std::string &name) override;
  void registerMemory(uint32_t rank, std::span<std::byte> memory) override;
  void setTimeout(std::chrono::milliseconds timeout) noexcept override;
  void onStop(std::function<void(const Status &)> callback) override { failure_.onFailure(std::move(callback)); }
  void stop(const Status &status) noexcept override;
  Status failure() const noexcept override { return control_->failure(); }
  void setStopFlag(const std::atomic<bool> &requested) override { stopRequested_ = &requested; }
  void copy(uint32_t from, uint32_t to, std::span<std::byte> bytes) override { control_->copy(from, to, bytes); }
  bool anyOf(bool mine) noexcept override { return control_->anyOf(mine); }
  void requireEqual(const std::string &what, uint64_t digest) override { control_->requireEqual(what, digest); }
  std::vector<uint32_t> missing() const override { return control_->missing(); }
  void finish() override { control_->finish(); }

  // For its connections.
  ControlPlane &control() noexcept { return *control_; }
  int gpu() const noexcept { return gpu_; }
  bool stopped() const noexcept { return failure_.failed(); }
  std::chrono::milliseconds timeout() const noexcept { return timeout_.load(); }
  void add(NcclConnection &connection);
  void remove(NcclConnection &connection);

private:
  void watch() noexcept;
  /// Looks at every connection; returns the first failure.
  Status examineAll() noexcept;
  void abortAll() noexcept;
  void printWhereItStands(const char *event) noexcept;

  const std::unique_ptr<ControlPlane> control_;
  const int gpu_;
  std::atomic<std::chrono::milliseconds> timeout_;
  FailureNotice failure_;
  std::mutex mutex_; // of connections_
  std::vector<NcclConnection *> connections_;
  std::atomic<const std::atomic<bool> *> stopRequested_ = nullptr;
  std::atomic<bool> mine_ = false; // the failure is this rank's own
  std::atomic<bool> done_ = false;
  std::shared_ptr<std::atomic<bool>> aborting_; // until NCCL has aborted
  RunningClock clock_;                          // the watchdog's
  std::thread watchdog_;                        // last: it uses everything
};

/// Throws ds::Error where NCCL is older than what this was built with.
std::unique_ptr<Transport> makeNcclTransport(std::unique_ptr<ControlPlane> control, int gpu);

} // namespace ds::runtime
