//===- StoreServer.h - where the ranks of a run meet over TCP -------------===//
#pragma once

#include "runtime/comm/tcp/Frame.h"
#include "runtime/comm/tcp/Socket.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace ds::runtime {

/// Runs in rank 0's process: a thread that keeps values, gathers those of all ranks, and tells every rank the first
/// failure. A rank whose connection ends before it said Bye is one. What is no rank of this run is not listened to.
class StoreServer {
public:
  StoreServer(Socket listener, const StoreAddress &address, uint32_t ranks);
  /// Ends once every rank has gone or said Bye, or after 3 s.
  ~StoreServer();
  StoreServer(const StoreServer &) = delete;
  StoreServer &operator=(const StoreServer &) = delete;

private:
  struct Wanted { ///< what a rank waits for
    std::string key;
    bool gather;
    Deadline deadline;
  };
  struct Peer {
    Socket socket;
    Deadline helloBy;
    std::optional<uint32_t> rank; // once it has said Hello
    FrameReader in;
    std::vector<std::byte> out;
    std::optional<Wanted> wanted;
    bool bye = false, gone = false;
  };
  struct Gathering {
    std::vector<std::optional<std::vector<std::byte>>> values; // by rank
    uint32_t arrived = 0, answered = 0;
  };

  void serve() noexcept;
  void waitForSomething();
  void acceptAll();
  void read(Peer &peer);
  void write(Peer &peer);
  void handle(Peer &peer, Frame frame);
  void greet(Peer &peer, const Frame &hello);
  void gather(Peer &peer, Frame frame);
  void answerAll();
  /// Whether it was there to answer with.
  bool answer(Peer &peer);
  void answerLate(Peer &peer);
  void lose(Peer &peer);
  void send(Peer &peer, FrameKind kind, std::vector<std::byte> value);
  /// Tells everyone but `author`; the first failure counts.
  void fail(const std::string &text, const Peer *author = nullptr);
  bool everyoneLeft() const;

  const Socket listener_;
  const StoreAddress address_;
  const uint32_t ranks_;
  std::list<Peer> peers_;
  std::map<std::string, std::vector<std::byte>> values_;
  std::map<std::string, Gathering> gatherings_;
  std::optional<std::string> failure_;
  std::atomic<bool> stop_ = false;
  std::thread thread_; // last: it uses everything
};

/// A sentence as a frame's value, and back.
std::vector<std::byte> toBytes(const std::string &text);
std::string toText(const std::vector<std::byte> &bytes);

} // namespace ds::runtime
