//===- StoreServer.h - where the ranks of a run meet over TCP -------------===//
#pragma once

#include "core/RunningClock.h"
#include "runtime/comm/tcp/Admission.h"
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
/// failure. A rank whose connection ends before it said Bye is one. What is no rank of this run, or comes when all
/// ranks are there already, is told so at most and changes nothing.
class StoreServer {
public:
  StoreServer(Socket listener, const StoreAddress &address, uint32_t ranks, const RunKey &key);
  /// Ends once every rank has gone or said Bye, or after 3 s.
  ~StoreServer();
  StoreServer(const StoreServer &) = delete;
  StoreServer &operator=(const StoreServer &) = delete;

private:
  struct Wanted { ///< what a rank waits for
    std::string key;
    bool gather;
    RunningClock::Time deadline;
  };
  struct Peer {
    Socket socket;
    RunningClock::Time helloBy;
    std::optional<Admission> admission = {}; // once it has said Hello
    std::optional<uint32_t> rank = {};       // once it has proved to be one
    RunningClock::Time heard = {};           // when it last sent anything
    FrameReader in = FrameReader(maxStrangerBytes);
    std::vector<std::byte> out = {};
    std::optional<Wanted> wanted = {};
    bool bye = false, refused = false, gone = false;
  };
  struct Kept {
    std::vector<std::byte> value;
    uint32_t author;
  };
  struct Gathering {
    std::vector<std::optional<std::vector<std::byte>>> values; // by rank
    uint32_t arrived = 0, answered = 0;
  };

  void serve() noexcept;
  void waitForSomething();
  void acceptSome();
  void lackDescriptors();
  /// Ends the connection that has been a stranger's longest. Returns whether there was one.
  bool dropStranger();
  void read(Peer &peer);
  void write(Peer &peer);
  void handle(Peer &peer, Frame frame);
  void handleStranger(Peer &peer, const Frame &frame);
  void greet(Peer &peer, const Frame &hello);
  void admit(Peer &peer, const Frame &proof);
  /// Tells a stranger why it is none of the run's; the run goes on.
  void refuse(Peer &peer, const std::string &text);
  void put(const Peer &peer, Frame frame);
  void take(Peer &peer, const Frame &frame);
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
  const RunKey key_;
  RunningClock clock_;               // of its thread, as all that follows
  RunningClock::Time listenAgain_{}; // not before
  std::list<Peer> peers_;
  uint32_t admitted_ = 0; // ranks, since the beginning
  std::map<std::string, Kept> values_;
  std::vector<uint32_t> kept_; // values, by the rank that put them
  std::map<std::string, Gathering> gatherings_;
  std::optional<std::string> failure_;
  std::atomic<bool> stop_ = false;
  std::thread thread_; // last: it uses everything
};

/// A sentence as a frame's value, and back.
std::vector<std::byte> toBytes(const std::string &text);
std::string toText(const std::vector<std::byte> &bytes);

} // namespace ds::runtime
