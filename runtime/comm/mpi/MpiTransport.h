//===- MpiTransport.h - ranks that are processes --------------------------===//
#pragma once

#include "runtime/comm/FailureNotice.h"
#include "runtime/comm/LastHeard.h"
#include "runtime/comm/Transport.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mpi.h>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ds::runtime {

/// This process is one rank; MPI carries the messages. A thread of its own listens for ranks that have failed, and
/// tells others that this one runs.
class MpiTransport final : public Transport {
public:
  /// Throws ds::Error when MPI cannot be called from several threads at once, or processes do not come in time.
  explicit MpiTransport(std::chrono::milliseconds timeout);
  ~MpiTransport() override;

  uint32_t ranks() const noexcept override { return ranks_; }
  const std::vector<uint32_t> &localRanks() const noexcept override { return localRanks_; }
  std::unique_ptr<Communicator> communicator(uint32_t rank, const std::vector<uint32_t> &members,
                                             uint32_t key) override;
  std::unique_ptr<SendingEnd> sendingEnd(uint32_t from, uint32_t to, uint32_t key, const std::string &name) override;
  std::unique_ptr<ReceivingEnd> receivingEnd(uint32_t from, uint32_t to, uint32_t key,
                                             const std::string &name) override;
  void setTimeout(std::chrono::milliseconds timeout) noexcept override { timeout_ = timeout; }
  void onStop(std::function<void(const Status &)> callback) override { failure_.onFailure(std::move(callback)); }
  void stop(const Status &status) noexcept override;
  Status failure() const noexcept override { return failure_.get(); }
  void setStopFlag(const std::atomic<bool> &requested) override { stopRequested_ = &requested; }
  void copy(uint32_t from, uint32_t to, std::span<std::byte> bytes) override;
  bool anyOf(bool mine) noexcept override;
  void requireEqual(const std::string &what, uint64_t digest) override;
  std::vector<uint32_t> missing() const override;
  void finish() override;

  // For its communicators and channels.
  bool stopped() const noexcept { return failure_.failed(); }
  std::chrono::milliseconds timeout() const noexcept { return timeout_.load(); }
  /// How long ago a rank was known to run.
  int64_t heardMs(uint32_t rank) const noexcept { return heard_->agoMs(rank); }
  /// What this rank is in: "all_gather" or "send", and the command's name.
  void entered(const char *name, const char *what) noexcept;
  /// Of several queues that are in something, the last to enter counts.
  void left(const char *what) noexcept {
    if (lastWhat_ == what)
      inside_ = false;
  }

private:
  /// Of MPI's messages from one rank to another that it runs, on the way.
  struct Beat {
    MPI_Request request = MPI_REQUEST_NULL;
    std::vector<uint32_t> agoMs; // LastHeard::tell
    bool done() noexcept;
  };

  void listen() noexcept;
  void hearErrors() noexcept;
  void hearBeats() noexcept;
  void beat() noexcept;
  void sayGoodbye() noexcept;
  /// Tells every rank this one's value and learns theirs, into values_; each so knows who stands still. Returns false
  /// when they do not all come in time, which stops the run with a sentence that names them, or when it was stopped;
  /// `despiteStop`: not then, for ranks that all know of it and end together.
  bool exchange(uint64_t mine, const char *what, bool despiteStop = false) noexcept;
  /// As exchange; throws ds::Error.
  void exchangeOrThrow(uint64_t mine, const char *what);
  void printLastEntered() const noexcept;

  uint32_t ranks_ = 0, rank_ = 0;
  std::vector<uint32_t> localRanks_;
  MPI_Comm control_ = MPI_COMM_NULL;  // errors of ranks that have failed
  MPI_Comm host_ = MPI_COMM_NULL;     // what processes say to each other between runs
  MPI_Comm groups_ = MPI_COMM_NULL;   // of collectives, by tag
  MPI_Comm messages_ = MPI_COMM_NULL; // of channels, by tag
  std::vector<MPI_Request> errorSends_;
  std::string error_; // what they send
  std::atomic<std::chrono::milliseconds> timeout_;
  FailureNotice failure_;
  std::atomic<const std::atomic<bool> *> stopRequested_ = nullptr;
  std::atomic<const char *> lastName_ = nullptr, lastWhat_ = nullptr; // of the collective or message entered last
  std::atomic<bool> inside_ = false, done_ = false;
  std::unique_ptr<LastHeard> heard_;
  // The listener's: by rank, and how many there were.
  std::vector<Beat> beats_;
  std::vector<uint32_t> heardAgoMs_; // of the beat received last
  uint64_t beaten_ = 0;
  std::atomic<bool> beatsStop_ = false, beatsStopped_ = false; // asked; and none is on the way any more
  std::vector<uint32_t> everyRank_;
  // Of exchange, by rank: it may give up while MPI still uses them.
  std::vector<uint64_t> values_;
  std::vector<MPI_Request> valueReceives_, valueSends_;
  std::vector<std::byte> staging_;  // of copy, for the same reason
  mutable std::mutex missingMutex_; // of missing_
  std::vector<uint32_t> missing_;
  bool finished_ = false;
  std::thread listener_; // last: it uses everything
};

/// Most bytes of one message of MPI, whose counts are ints.
inline constexpr uint64_t maxMessageBytes = uint64_t(1) << 30;

/// Looks at `done` until it holds, at first often, then between short sleeps, since other ranks may need the core.
/// Returns false when `giveUp` holds first.
template <typename Done, typename GiveUp> bool pollUntil(Done &&done, GiveUp &&giveUp) noexcept {
  const auto begin = std::chrono::steady_clock::now();
  while (!done()) {
    if (giveUp())
      return false;
    const auto waited = std::chrono::steady_clock::now() - begin;
    if (waited > std::chrono::microseconds(50))
      std::this_thread::sleep_for(waited > std::chrono::milliseconds(10) ? std::chrono::microseconds(200)
                                                                         : std::chrono::microseconds(20));
  }
  return true;
}

} // namespace ds::runtime
