//===- Socket.h - a TCP connection with time limits ------------------------===//
#pragma once

#include "core/RunningClock.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace ds::runtime {

/// Where rank 0 listens.
struct StoreAddress {
  std::string host;
  uint16_t port = 0;
  std::string text() const { return host + ":" + std::to_string(port); }
};

/// An open file descriptor, which does not block and is closed with it.
class Socket {
public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket &&other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket &operator=(Socket &&other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket();

  bool open() const noexcept { return descriptor_ >= 0; }
  int descriptor() const noexcept { return descriptor_; }
  /// Ends both directions; who waits for it wakes.
  void shutDown() const noexcept;

  /// Bytes read into `target`, 0 where there are none yet, -1 when the other side has gone.
  ptrdiff_t readSome(std::span<std::byte> target) const noexcept;
  /// Bytes taken, 0 where there is no room yet, -1 when the other side has gone.
  ptrdiff_t writeSome(std::span<const std::byte> source) const noexcept;
  /// Returns false when the other side has gone or the time is up.
  bool writeAll(std::span<const std::byte> source, Patience patience) const noexcept;

private:
  int descriptor_ = -1;
};

/// Listens there, and on no other address of this machine. Returns a closed socket and why.
Socket listenOn(const StoreAddress &address, std::string &reason);

/// One attempt to connect. Returns a closed socket and why.
Socket connectTo(const StoreAddress &address, Patience &patience, std::string &reason);

/// The next connection of a listening socket, or a closed one where there is none, with errno.
Socket acceptFrom(const Socket &listener) noexcept;

/// Whether the errno says that there are no descriptors or memory for one more connection.
bool isExhausted(int error) noexcept;

/// Lets this process have so many connections, as far as its limits allow. Returns why not, or "".
std::string reserveDescriptors(uint64_t connections);

} // namespace ds::runtime
