//===- InProcessChannel.cpp - messages between threads --------------------===//
#include "runtime/comm/inprocess/InProcessChannel.h"

#include "core/Status.h"
#include "runtime/comm/Arrivals.h"
#include "runtime/comm/Channel.h"
#include "runtime/comm/inprocess/InProcessTransport.h"
#include "runtime/device/QueueStanding.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {

class InProcessChannel::Sender final : public SendingEnd {
public:
  explicit Sender(InProcessChannel &channel) : channel_(channel) {}
  Status send(std::span<const std::span<const std::byte>> parts, const char *what, void *stream) noexcept override {
    return channel_.send(parts, what, stream);
  }
  uint64_t sentBytes() const noexcept override { return channel_.bytes_; }
  void belongsTo(const QueueStanding &queue) override { channel_.sender_ = &queue; }
  void addMissing(std::vector<const QueueStanding *> &queues) const override {
    if (channel_.taken_ < channel_.offered_)
      queues.push_back(channel_.receiver_);
  }

private:
  InProcessChannel &channel_;
};

class InProcessChannel::Receiver final : public ReceivingEnd {
public:
  explicit Receiver(InProcessChannel &channel) : channel_(channel) {}
  Status receive(std::span<const std::span<std::byte>> parts, const char *what, void *stream) noexcept override {
    return channel_.receive(parts, what, stream);
  }
  uint64_t receivedBytes() const noexcept override { return channel_.bytes_; }
  void belongsTo(const QueueStanding &queue) override { channel_.receiver_ = &queue; }
  void addMissing(std::vector<const QueueStanding *> &queues) const override {
    if (channel_.offered_ < channel_.wanted_)
      queues.push_back(channel_.sender_);
  }

private:
  InProcessChannel &channel_;
};

InProcessChannel::InProcessChannel(InProcessTransport &transport, uint32_t from, uint32_t to, std::string name)
    : transport_(transport), from_(from), to_(to), name_(std::move(name)), changes_(transport.guard()) {}

std::unique_ptr<SendingEnd> InProcessChannel::sendingEnd() {
  sendingMover_ = transport_.makeMover(from_);
  return std::make_unique<Sender>(*this);
}

std::unique_ptr<ReceivingEnd> InProcessChannel::receivingEnd() {
  receivingMover_ = transport_.makeMover(to_);
  return std::make_unique<Receiver>(*this);
}

Status InProcessChannel::send(std::span<const std::span<const std::byte>> parts, const char *what,
                              void *stream) noexcept {
  parts_ = parts;
  what_ = what;
  const uint64_t mine = offered_ + 1;
  if (Status status = sendingMover_->mark(mine, stream); !status.ok())
    return status;
  offered_ = mine;
  changes_.notify();
  const std::chrono::milliseconds timeout = transport_.timeout();
  if (!changes_.waitFor([&] { return taken_ >= mine; }, timeout))
    return transport_.guard().failed()
               ? transport_.guard().get()
               : missingPeer({from_, to_, "send", name_.c_str()}, what, timeout, -1, whoHoldsUp({receiver_}));
  return sendingMover_->follow(*receivingMover_, mine, stream);
}

Status InProcessChannel::receive(std::span<const std::span<std::byte>> parts, const char *what, void *stream) noexcept {
  wanted_ = taken_ + 1;
  const std::chrono::milliseconds timeout = transport_.timeout();
  if (!changes_.waitFor([&] { return offered_ > taken_; }, timeout))
    return transport_.guard().failed()
               ? transport_.guard().get()
               : missingPeer({to_, from_, "receive", name_.c_str()}, what, timeout, -1, whoHoldsUp({sender_}));
  if (Status status = checkEqual(parts, what); !status.ok())
    return status;
  const uint64_t mine = taken_ + 1;
  if (Status status = receivingMover_->follow(*sendingMover_, mine, stream); !status.ok())
    return status;
  uint64_t bytes = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (Status status = receivingMover_->copy(parts[i].data(), parts_[i].data(), parts[i].size(), stream); !status.ok())
      return status;
    bytes += parts[i].size();
  }
  if (Status status = receivingMover_->mark(mine, stream); !status.ok())
    return status;
  bytes_ += bytes;
  taken_ = mine;
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
