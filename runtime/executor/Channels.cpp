//===- Channels.cpp - one rank's ends of channels -------------------------===//
#include "runtime/executor/Channels.h"

#include "core/Error.h"
#include "runtime/comm/Channel.h"
#include "runtime/comm/Transport.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"

#include <cstdint>
#include <string>

namespace ds::runtime {

Channels::Channels(const plan::proto::Plan &plan, const plan::proto::Role &role, uint32_t rank, Transport *transport)
    : count_(uint32_t(plan.channels_size())) {
  for (const plan::proto::Routine &routine : role.routines())
    for (const plan::proto::Command &command : routine.commands()) {
      if (command.has_send())
        sending_[command.send().channel()];
      if (command.has_receive())
        receiving_[command.receive().channel()];
    }
  if ((!sending_.empty() || !receiving_.empty()) && transport == nullptr)
    throw Error("the plan has messages, but its ranks were given no way to reach each other");
  for (uint32_t channel = 0; channel < count_; ++channel) {
    const std::string &name = plan.channels(int(channel)).name();
    if (const auto end = sending_.find(channel); end != sending_.end())
      end->second = transport->sendingEnd(rank, plan::receiverOf(plan, channel, rank), channel, name);
    if (const auto end = receiving_.find(channel); end != receiving_.end())
      end->second = transport->receivingEnd(plan::senderTo(plan, channel, rank), rank, channel, name);
  }
}

Channels::~Channels() {
  for (uint32_t channel = 0; channel < count_; ++channel) {
    sending_.erase(channel);
    receiving_.erase(channel);
  }
}

uint64_t Channels::sentBytes() const noexcept {
  uint64_t bytes = 0;
  for (const auto &[channel, end] : sending_)
    bytes += end->sentBytes();
  return bytes;
}

uint64_t Channels::receivedBytes() const noexcept {
  uint64_t bytes = 0;
  for (const auto &[channel, end] : receiving_)
    bytes += end->receivedBytes();
  return bytes;
}

} // namespace ds::runtime
