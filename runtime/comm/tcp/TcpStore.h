//===- TcpStore.h - a rank's side of the store ----------------------------===//
#pragma once

#include "runtime/comm/tcp/Admission.h"
#include "runtime/comm/tcp/Frame.h"
#include "runtime/comm/tcp/Socket.h"
#include "runtime/comm/tcp/StoreServer.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace ds::runtime {

/// Values under keys that all ranks see, kept by rank 0's process. One thread at a time asks; `fail` may come from any.
/// Everything waits for at most its timeout and throws ds::Error, at the latest when some rank has failed or gone.
/// Cf. torch.distributed.TCPStore.
class TcpStore {
public:
  /// Rank 0 listens, everyone connects; done when all ranks have come. `onFailure` is called once, from a thread of the
  /// store, with the first failure of another rank.
  TcpStore(const StoreAddress &address, uint32_t rank, uint32_t ranks, const RunKey &key,
           std::chrono::milliseconds timeout, std::function<void(const std::string &)> onFailure);
  /// Without finish(), every other rank ends with an error that names this one.
  ~TcpStore();
  TcpStore(const TcpStore &) = delete;
  TcpStore &operator=(const TcpStore &) = delete;

  void put(const std::string &key, std::span<const std::byte> value);
  /// Waits for the value of a key and forgets it; `from`: the rank that will put it, for errors.
  std::vector<std::byte> take(const std::string &key, uint32_t from, std::chrono::milliseconds timeout);
  /// The values of all ranks in rank order. `what` stands in errors.
  std::vector<std::byte> gather(const std::string &key, std::span<const std::byte> value,
                                std::chrono::milliseconds timeout, const char *what);
  /// Ranks that did not come to what this one gathered.
  std::vector<uint32_t> missing() const;
  /// Every rank ends with this sentence.
  void fail(const std::string &text) noexcept;
  /// All is well; what others do from now on is no business of this rank.
  void finish();

private:
  void listenAsRankZero();
  void connect(std::chrono::milliseconds timeout);
  void greet(std::chrono::milliseconds timeout);
  void send(const Frame &frame);
  /// Sends and waits for the answer.
  Frame ask(const Frame &frame);
  /// Ends the run of all ranks with this sentence.
  [[noreturn]] void giveUp(const std::string &text);
  void listen() noexcept;
  /// Says that this rank runs.
  void beat() noexcept;
  /// Returns whether to go on listening.
  bool hear(Frame frame);
  void noteFailure(const std::string &text);

  const StoreAddress address_;
  const uint32_t rank_, ranks_;
  const RunKey key_;
  const std::function<void(const std::string &)> onFailure_;
  std::unique_ptr<StoreServer> server_; // rank 0's
  Socket socket_;
  std::mutex writing_;
  mutable std::mutex mutex_; // of answer_, failure_ and missing_
  std::condition_variable changed_;
  std::optional<Frame> answer_;
  std::optional<std::string> failure_;
  std::vector<uint32_t> missing_;
  std::atomic<bool> beats_ = false, finished_ = false, closing_ = false;
  std::thread listener_; // last: it uses everything
};

} // namespace ds::runtime
