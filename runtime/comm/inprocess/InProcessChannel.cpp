//===- InProcessChannel.cpp - messages between threads --------------------===//
#include "runtime/comm/inprocess/InProcessChannel.h"

#include "runtime/comm/Arrivals.h"
#include "runtime/comm/Channel.h"
#include "runtime/comm/inprocess/InProcessTransport.h"
#include "runtime/core/Status.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace ds::runtime {

class InProcessChannel::Sender final : public SendingEnd {
public:
  explicit Sender(InProcessChannel &channel) : channel_(channel) {}
  Status send(std::span<const std::span<const std::byte>> parts, const char *what, void *) noexcept override {
    return channel_.send(parts, what);
  }
  uint64_t sentBytes() const noexcept override { return channel_.bytes_; }

private:
  InProcessChannel &channel_;
};

class InProcessChannel::Receiver final : public ReceivingEnd {
public:
  explicit Receiver(InProcessChannel &channel) : channel_(channel) {}
  Status receive(std::span<const std::span<std::byte>> parts, const char *what, void *) noexcept override {
    return channel_.receive(parts, what);
  }
  uint64_t receivedBytes() const noexcept override { return channel_.bytes_; }

private:
  InProcessChannel &channel_;
};

InProcessChannel::InProcessChannel(InProcessTransport &transport, uint32_t from, uint32_t to, std::string name)
    : transport_(transport), from_(from), to_(to), name_(std::move(name)) {}

std::unique_ptr<SendingEnd> InProcessChannel::sendingEnd() { return std::make_unique<Sender>(*this); }
std::unique_ptr<ReceivingEnd> InProcessChannel::receivingEnd() { return std::make_unique<Receiver>(*this); }

Status InProcessChannel::send(std::span<const std::span<const std::byte>> parts, const char *what) noexcept {
  parts_ = parts;
  what_ = what;
  const uint64_t mine = offered_.fetch_add(1) + 1;
  changes_.notify();
  const std::chrono::milliseconds patience = transport_.patience();
  const bool inTime = changes_.waitFor([&] { return transport_.stopped() || taken_ >= mine; }, patience);
  if (transport_.stopped())
    return transport_.failure();
  return inTime ? Status::success() : missingPeer({from_, to_, "send", name_.c_str()}, what, patience);
}

Status InProcessChannel::receive(std::span<const std::span<std::byte>> parts, const char *what) noexcept {
  const std::chrono::milliseconds patience = transport_.patience();
  const bool inTime = changes_.waitFor([&] { return transport_.stopped() || offered_ > taken_; }, patience);
  if (transport_.stopped())
    return transport_.failure();
  if (!inTime)
    return missingPeer({to_, from_, "receive", name_.c_str()}, what, patience);
  if (Status status = checkEqual(parts, what); !status.ok())
    return status;
  uint64_t bytes = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].empty())
      std::memcpy(parts[i].data(), parts_[i].data(), parts[i].size());
    bytes += parts[i].size();
  }
  bytes_ += bytes;
  ++taken_;
  changes_.notify();
  return Status::success();
}

/// A plan whose ranks disagree must not make a rank read past another's memory.
Status InProcessChannel::checkEqual(std::span<const std::span<std::byte>> parts, const char *what) const noexcept {
  if (std::equal(parts.begin(), parts.end(), parts_.begin(), parts_.end(),
                 [](const auto &a, const auto &b) { return a.size() == b.size(); }))
    return Status::success();
  return Status::failure("on channel %s rank %u sent other sizes (%s) than rank %u receives (%s)", name_.c_str(), from_,
                         what_, to_, what);
}

} // namespace ds::runtime
