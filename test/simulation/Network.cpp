//===- Network.cpp - sockets of simulated processes -----------------------===//
#include "test/simulation/Network.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>

namespace ds::sim {

Network *Network::current = nullptr;

namespace {

using namespace std::chrono_literals;

constexpr size_t windowBytes = 16384;      // that may be under way
constexpr Network::Time silentLimit = 30s; // Socket.cpp's TCP_USER_TIMEOUT and keep-alive
constexpr size_t rememberedBytes = 512;    // of what a process sends first

int failWith(int error) noexcept {
  errno = error;
  return -1;
}

uint16_t portOf(const sockaddr *address) noexcept {
  sockaddr_in v4{};
  std::memcpy(&v4, address, sizeof v4); // the port of an IPv6 address stands at the same place
  return v4.sin_port;
}

Network &network() noexcept { return *Network::current; }
Scheduler &scheduler() noexcept { return *Scheduler::current(); }

} // namespace

// Of the network.

int Network::add(uint32_t process) {
  ends_.push_back(std::make_unique<End>());
  ends_.back()->process = process;
  return int(ends_.size() - 1);
}

void Network::called() const {
  scheduler().point();
  if (onCall)
    onCall(scheduler().process());
}

Network::Time Network::latency() {
  Random &random = scheduler().random();
  const Time least = std::chrono::microseconds(uint64_t(10) << random.below(8)); // to 1.3 ms
  return least + std::exchange(late_[scheduler().process()], Time(0));
}

void Network::changed() noexcept { scheduler().wakeAll(this); }

/// The other side learns that this end is gone.
void Network::leave(int descriptor, bool reset) noexcept {
  End &mine = end(descriptor);
  for (const int waiting : std::exchange(mine.come, {}))
    leave(waiting, true);
  if (mine.peer < 0)
    return;
  End &other = end(mine.peer);
  if (reset)
    while (!other.in.pieces.empty() && other.in.pieces.back().first > scheduler().now()) {
      other.in.bytes -= other.in.pieces.back().second.size();
      other.in.pieces.pop_back();
    }
  const Time arrives = reset ? scheduler().now() : std::max(other.in.last, scheduler().now() + latency());
  if (other.silentSince == Scheduler::never && other.in.end == Scheduler::never) {
    other.in.end = arrives;
    other.in.reset = reset;
  }
}

void Network::closeAll(uint32_t process, bool reset) noexcept {
  for (size_t i = 0; i < ends_.size(); ++i)
    if (End &mine = *ends_[i]; mine.process == process && !mine.closed) {
      leave(int(i), reset);
      mine.closed = true;
    }
  changed();
}

bool Network::resetAll(uint32_t process) noexcept {
  bool any = false;
  for (size_t i = 0; i < ends_.size(); ++i)
    if (End &mine = *ends_[i]; isOpen(mine, process)) {
      leave(int(i), true);
      leave(mine.peer, true);
      any = true;
    }
  changed();
  return any;
}

bool Network::cut(uint32_t process) noexcept {
  bool any = false;
  for (const std::unique_ptr<End> &mine : ends_)
    if (isOpen(*mine, process)) {
      for (End *one : {mine.get(), &end(mine->peer)}) {
        one->silentSince = scheduler().now();
        std::erase_if(one->in.pieces, [&](const auto &piece) { return piece.first > scheduler().now(); });
      }
      any = true;
    }
  return any;
}

/// Whether a call on it fails: it was reset, or TCP has given up.
bool Network::lost(const End &end) const noexcept {
  const Time now = scheduler().now();
  return (end.in.reset && end.in.end <= now) ||
         (end.silentSince != Scheduler::never && now >= end.silentSince + silentLimit);
}

short Network::ready(End &end, short events) const noexcept {
  const Time now = scheduler().now();
  short found = 0;
  if (end.shut || lost(end) || end.in.end <= now || !end.come.empty() ||
      (!end.in.pieces.empty() && end.in.pieces.front().first <= now))
    found |= POLLIN;
  if (end.connected <= now && (end.refused || end.shut || lost(end) || ends_[size_t(end.peer)]->in.bytes < windowBytes))
    found |= POLLOUT;
  return short(found & events);
}

/// When time alone makes it ready.
Network::Time Network::nextChange(const End &end) const noexcept {
  const Time now = scheduler().now();
  Time next = Scheduler::never;
  const auto consider = [&](Time time) {
    if (time > now)
      next = std::min(next, time);
  };
  consider(end.connected);
  consider(end.in.end);
  if (!end.in.pieces.empty())
    consider(end.in.pieces.front().first);
  if (end.silentSince != Scheduler::never)
    consider(end.silentSince + silentLimit);
  return next;
}

// The system calls.

int socket(int, int, int) noexcept {
  network().called();
  return network().add(scheduler().process());
}

int setsockopt(int, int, int, const void *, socklen_t) noexcept { return 0; }

int getsockopt(int descriptor, int, int, void *value, socklen_t *) noexcept {
  const int error = network().end(descriptor).refused ? ECONNREFUSED : 0;
  std::memcpy(value, &error, sizeof error);
  return 0;
}

int bind(int descriptor, const sockaddr *address, socklen_t) noexcept {
  network().called();
  network().end(descriptor).port = portOf(address);
  return 0;
}

int listen(int, int) noexcept { return 0; }

int connect(int descriptor, const sockaddr *address, socklen_t) noexcept {
  Network &net = network();
  net.called();
  Network::End &mine = net.end(descriptor);
  mine.connected = scheduler().now() + net.latency();
  mine.refused = true;
  for (size_t i = 0; i < net.ends_.size(); ++i)
    if (Network::End &listener = *net.ends_[i]; listener.port == portOf(address) && !listener.closed) {
      const int other = net.add(listener.process); // `listener` stays where it is
      net.end(other).peer = descriptor;
      net.end(other).connected = scheduler().now();
      mine.peer = other;
      mine.refused = false;
      listener.come.push_back(other);
      net.changed();
      break;
    }
  return failWith(EINPROGRESS);
}

int accept4(int descriptor, sockaddr *, socklen_t *, int) noexcept {
  network().called();
  std::deque<int> &come = network().end(descriptor).come;
  if (come.empty())
    return failWith(EAGAIN);
  const int first = come.front();
  come.pop_front();
  return first;
}

ssize_t recv(int descriptor, void *target, size_t bytes, int) noexcept {
  network().called();
  Network::End &mine = network().end(descriptor);
  Network::Stream &in = mine.in;
  const Network::Time now = scheduler().now();
  if (in.pieces.empty() || in.pieces.front().first > now || mine.shut) {
    if (network().lost(mine))
      return failWith(ECONNRESET);
    return mine.shut || (in.pieces.empty() && in.end <= now) ? 0 : failWith(EAGAIN);
  }
  std::vector<std::byte> &piece = in.pieces.front().second;
  const size_t most = std::min(bytes, piece.size());
  const size_t count = scheduler().random().oneIn(4) ? 1 + scheduler().random().below(most) : most;
  std::memcpy(target, piece.data(), count);
  piece.erase(piece.begin(), piece.begin() + ptrdiff_t(count));
  if (piece.empty())
    in.pieces.pop_front();
  in.bytes -= count;
  network().changed(); // there is room again
  return ssize_t(count);
}

ssize_t send(int descriptor, const void *source, size_t bytes, int) noexcept {
  Network &net = network();
  net.called();
  Network::End &mine = net.end(descriptor);
  if (mine.shut || net.lost(mine))
    return failWith(EPIPE);
  Network::End &other = net.end(mine.peer);
  if (other.closed && mine.in.end <= scheduler().now())
    return failWith(EPIPE);
  const size_t room = windowBytes - std::min(windowBytes, other.in.bytes);
  if (room == 0)
    return failWith(EAGAIN);
  const size_t most = std::min(bytes, room);
  const size_t count = scheduler().random().oneIn(4) ? 1 + scheduler().random().below(most) : most;
  const auto *first = static_cast<const std::byte *>(source);
  if (std::vector<std::byte> &sent = net.sent_[scheduler().process()]; sent.size() < rememberedBytes)
    sent.insert(sent.end(), first, first + count);
  const Network::Time arrives = std::max(other.in.last, scheduler().now() + net.latency());
  other.in.bytes += count;
  if (mine.silentSince == Scheduler::never) { // else it waits for an answer that does not come
    other.in.last = arrives;
    other.in.pieces.push_back({arrives, {first, first + count}});
    net.changed();
  }
  return ssize_t(count);
}

int shutdown(int descriptor, int) noexcept {
  network().called();
  network().end(descriptor).shut = true;
  network().leave(descriptor, false);
  network().changed();
  return 0;
}

int close(int descriptor) noexcept {
  Network &net = network();
  net.called();
  net.leave(descriptor, false);
  net.end(descriptor).closed = true;
  net.changed();
  return 0;
}

int poll(pollfd *waits, nfds_t count, int timeoutMs) noexcept {
  Network &net = network();
  net.called();
  const Network::Time until =
      timeoutMs < 0 ? Scheduler::never : scheduler().now() + std::chrono::milliseconds(timeoutMs);
  while (true) {
    int found = 0;
    Network::Time next = until;
    for (nfds_t i = 0; i < count; ++i) {
      waits[i].revents = net.ready(net.end(waits[i].fd), waits[i].events);
      found += waits[i].revents != 0 ? 1 : 0;
      next = std::min(next, net.nextChange(net.end(waits[i].fd)));
    }
    if (found > 0 || scheduler().now() >= until)
      return found;
    (void)scheduler().block(&net, "poll", next);
  }
}

ssize_t getrandom(void *target, size_t bytes, unsigned) noexcept {
  for (size_t i = 0; i < bytes; ++i)
    static_cast<std::byte *>(target)[i] = std::byte(scheduler().random().below(256));
  return ssize_t(bytes);
}

} // namespace ds::sim
