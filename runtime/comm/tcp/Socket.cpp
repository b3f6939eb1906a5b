//===- Socket.cpp - a TCP connection with time limits ----------------------===//
#include "runtime/comm/tcp/Socket.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <span>
#include <string>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ds::runtime {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

/// What the name stands for.
Addresses resolve(const char *host, uint16_t port, std::string &reason) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo *found = nullptr;
  if (const int code = ::getaddrinfo(host, std::to_string(port).c_str(), &hints, &found); code != 0) {
    reason = ::gai_strerror(code);
    found = nullptr;
  }
  return {found, &::freeaddrinfo};
}

void set(const Socket &socket, int level, int option, int value) noexcept {
  (void)::setsockopt(socket.descriptor(), level, option, &value, sizeof value);
}

/// Small frames go at once, and a machine that is switched off is noticed within half a minute.
void tune(const Socket &socket) noexcept {
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 4);
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 30000); // ms
}

Socket makeSocket(const addrinfo &address) {
  return Socket(::socket(address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, address.ai_protocol));
}

Socket listenOnAny(const addrinfo *addresses, int &error) {
  for (const addrinfo *address = addresses; address != nullptr; address = address->ai_next) {
    Socket socket = makeSocket(*address);
    set(socket, SOL_SOCKET, SO_REUSEADDR, 1); // connections of an earlier run may still be dying
    if (socket.open() && ::bind(socket.descriptor(), address->ai_addr, address->ai_addrlen) == 0 &&
        ::listen(socket.descriptor(), 1024) == 0)
      return socket;
    error = errno;
  }
  return {};
}

/// As poll(2) of one descriptor, which can be written to.
int awaitRoom(int descriptor, Patience &patience) noexcept {
  pollfd wait{descriptor, POLLOUT, 0};
  int ready = 0;
  do
    ready = ::poll(&wait, 1, int(patience.nextSleep().count()));
  while (ready == 0 && !patience.over());
  return ready;
}

bool gone(ptrdiff_t result) noexcept { return result < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR; }

} // namespace

Socket::~Socket() {
  if (open())
    ::close(descriptor_);
}

void Socket::shutDown() const noexcept { (void)::shutdown(descriptor_, SHUT_RDWR); }

ptrdiff_t Socket::readSome(std::span<std::byte> target) const noexcept {
  const ptrdiff_t count = ::recv(descriptor_, target.data(), target.size(), 0);
  if (count == 0 || gone(count))
    return -1;
  return std::max<ptrdiff_t>(0, count);
}

ptrdiff_t Socket::writeSome(std::span<const std::byte> source) const noexcept {
  const ptrdiff_t count = ::send(descriptor_, source.data(), source.size(), MSG_NOSIGNAL);
  return gone(count) ? -1 : std::max<ptrdiff_t>(0, count);
}

bool Socket::writeAll(std::span<const std::byte> source, Patience patience) const noexcept {
  while (!source.empty()) {
    const ptrdiff_t count = writeSome(source);
    if (count < 0)
      return false;
    source = source.subspan(size_t(count));
    if (count > 0)
      continue;
    if (awaitRoom(descriptor_, patience) == 0)
      return false;
  }
  return true;
}

Socket listenOn(const StoreAddress &address, std::string &reason) {
  const Addresses own = resolve(address.host.c_str(), address.port, reason);
  if (!own)
    return {};
  int error = 0;
  Socket socket = listenOnAny(own.get(), error);
  if (!socket.open())
    reason = error == EADDRNOTAVAIL ? "it is no address of this machine" : std::strerror(error);
  return socket;
}

Socket connectTo(const StoreAddress &address, Patience &patience, std::string &reason) {
  const Addresses addresses = resolve(address.host.c_str(), address.port, reason);
  for (const addrinfo *one = addresses.get(); one != nullptr; one = one->ai_next) {
    Socket socket = makeSocket(*one);
    int error = 0;
    if (!socket.open() || ::connect(socket.descriptor(), one->ai_addr, one->ai_addrlen) != 0)
      error = errno;
    if (error == EINPROGRESS) {
      socklen_t size = sizeof error;
      if (awaitRoom(socket.descriptor(), patience) <= 0)
        error = ETIMEDOUT;
      else
        (void)::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error == 0) {
      tune(socket);
      return socket;
    }
    reason = std::strerror(error);
  }
  return {};
}

Socket acceptFrom(const Socket &listener) noexcept {
  Socket socket(::accept4(listener.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket.open())
    tune(socket);
  return socket;
}

bool isExhausted(int error) noexcept {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

std::string reserveDescriptors(uint64_t connections) {
  constexpr uint64_t others = 128; // files, libraries, connections that turn out to be strangers'
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= connections + others)
    return "";
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, connections + others);
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= connections + others)
    return "";
  return "rank 0 keeps a connection for each of " + std::to_string(connections) + " ranks, which takes " +
         std::to_string(connections + others) + " file descriptors, but this process may have " +
         std::to_string(limit.rlim_max) + "; raise the limit (ulimit -Hn)";
}

} // namespace ds::runtime
