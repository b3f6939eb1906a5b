//===- InProcessChannel.h - messages between threads ----------------------===//
#pragma once

#include "runtime/comm/Channel.h"
#include "runtime/comm/inprocess/ByteMover.h"
#include "runtime/device/QueueStanding.h"
#include "runtime/device/RunGuard.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace ds::runtime {

class InProcessTransport;

/// A rendezvous: the sender offers its parts and waits; the receiver waits for the offer, copies from where the parts
/// lie, and lets the sender go. One copy, no buffer between. On accelerators the copy is only enqueued when the sender
/// goes; its stream waits for it.
class InProcessChannel {
public:
  InProcessChannel(InProcessTransport &transport, uint32_t from, uint32_t to, std::string name);

  std::unique_ptr<SendingEnd> sendingEnd();
  std::unique_ptr<ReceivingEnd> receivingEnd();

private:
  class Sender;
  class Receiver;

  Status send(std::span<const std::span<const std::byte>> parts, const char *what, void *stream) noexcept;
  Status receive(std::span<const std::span<std::byte>> parts, const char *what, void *stream) noexcept;
  /// Whether the message offered is the one expected.
  Status checkEqual(std::span<const std::span<std::byte>> parts, const char *what) const noexcept;

  InProcessTransport &transport_;
  const uint32_t from_, to_;
  const std::string name_;
  std::unique_ptr<ByteMover> sendingMover_, receivingMover_;
  // Of the message offered, which the receiver reads between `offered_` and `taken_`.
  std::span<const std::span<const std::byte>> parts_;
  const char *what_ = "";
  std::atomic<uint64_t> offered_ = 0, wanted_ = 0, taken_ = 0; // messages
  std::atomic<uint64_t> bytes_ = 0;                            // of messages taken
  RunGuard::Wait changes_;
  const QueueStanding *sender_ = nullptr, *receiver_ = nullptr; // nullptr: it was never told
};

} // namespace ds::runtime
