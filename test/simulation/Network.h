//===- Network.h - sockets of simulated processes -------------------------===//
//
// simulated_sources.py puts these system calls in place of the system's in its copy of runtime/comm/tcp. A connection
// is two streams of bytes: what is sent arrives later, in order, in pieces of any size, and is taken in pieces of any
// size. What TCP itself mends, a lost or repeated packet, is a delay here; what it cannot mend is a connection that is
// reset, which loses what was on its way, or a link that has gone silent, on which it gives up after half a minute.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "test/simulation/Scheduler.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <poll.h>
#include <sys/socket.h>
#include <utility>
#include <vector>

namespace ds::sim {

int socket(int domain, int type, int protocol) noexcept;
int setsockopt(int descriptor, int level, int option, const void *value, socklen_t bytes) noexcept;
int getsockopt(int descriptor, int level, int option, void *value, socklen_t *bytes) noexcept;
int bind(int descriptor, const sockaddr *address, socklen_t bytes) noexcept;
int listen(int descriptor, int backlog) noexcept;
int connect(int descriptor, const sockaddr *address, socklen_t bytes) noexcept;
int accept4(int descriptor, sockaddr *address, socklen_t *bytes, int flags) noexcept;
ssize_t recv(int descriptor, void *target, size_t bytes, int flags) noexcept;
ssize_t send(int descriptor, const void *source, size_t bytes, int flags) noexcept;
int shutdown(int descriptor, int how) noexcept;
int close(int descriptor) noexcept;
int poll(pollfd *waits, nfds_t count, int timeoutMs) noexcept;
ssize_t getrandom(void *target, size_t bytes, unsigned flags) noexcept;

/// All sockets of a run. A process is a number of the scheduler's.
class Network {
public:
  using Time = Scheduler::Time;

  Network() { current = this; }
  ~Network() { current = nullptr; }
  Network(const Network &) = delete;
  Network &operator=(const Network &) = delete;

  // For faults.

  /// Called at each system call of a process, which may not come back from it.
  std::function<void(uint32_t process)> onCall;
  /// The next bytes that the process sends are so much later, and all that follow behind them.
  void delay(uint32_t process, Time duration) { late_[process] = duration; }
  /// The kernel closes the sockets of a process that has died. `reset`: what it has sent and has not arrived is lost.
  void closeAll(uint32_t process, bool reset) noexcept;
  /// The process's connections lose what is on its way; both sides learn of it. Returns whether it had any, as below.
  bool resetAll(uint32_t process) noexcept;
  /// Nothing that the process sends arrives any more, nor what it is sent.
  bool cut(uint32_t process) noexcept;
  /// The bytes that it has sent first, on its first connection.
  const std::vector<std::byte> &sentFirst(uint32_t process) { return sent_[process]; }

  static Network *current;

private:
  friend int socket(int, int, int) noexcept;
  friend int getsockopt(int, int, int, void *, socklen_t *) noexcept;
  friend int bind(int, const sockaddr *, socklen_t) noexcept;
  friend int connect(int, const sockaddr *, socklen_t) noexcept;
  friend int accept4(int, sockaddr *, socklen_t *, int) noexcept;
  friend ssize_t recv(int, void *, size_t, int) noexcept;
  friend ssize_t send(int, const void *, size_t, int) noexcept;
  friend int shutdown(int, int) noexcept;
  friend int close(int) noexcept;
  friend int poll(pollfd *, nfds_t, int) noexcept;

  /// What is under way to one end.
  struct Stream {
    std::deque<std::pair<Time, std::vector<std::byte>>> pieces; // by arrival
    Time last{}, end = Scheduler::never;                        // of the last piece; of the other side's closing
    size_t bytes = 0;
    bool reset = false; // at `end`, rather than closed
  };
  struct End {
    uint32_t process = 0;
    uint16_t port = 0;    // of one that listens
    int peer = -1;        // descriptor of the other end
    Stream in;            // what comes from it
    std::deque<int> come; // of one that listens: ends of connections to accept
    Time connected = Scheduler::never, silentSince = Scheduler::never;
    bool refused = false, shut = false, closed = false;
  };

  bool isOpen(const End &end, uint32_t process) const noexcept {
    return end.process == process && !end.closed && !end.shut && end.peer >= 0;
  }
  End &end(int descriptor) { return *ends_[size_t(descriptor)]; }
  int add(uint32_t process);
  void called() const;
  Time latency();
  void leave(int descriptor, bool reset) noexcept;
  bool lost(const End &end) const noexcept;
  short ready(End &end, short events) const noexcept;
  Time nextChange(const End &end) const noexcept;
  void changed() noexcept;

  std::vector<std::unique_ptr<End>> ends_; // by descriptor
  std::map<uint32_t, Time> late_;
  std::map<uint32_t, std::vector<std::byte>> sent_;
};

} // namespace ds::sim
