//===- Channels.h - one rank's ends of channels ---------------------------===//
#pragma once

#include "runtime/comm/Channel.h"
#include "runtime/comm/Transport.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <map>
#include <memory>

namespace ds::runtime {

/// One for each channel of the plan that the role sends or receives on.
class Channels {
public:
  /// `transport` may be nullptr where the role has no messages. Throws ds::Error.
  Channels(const plan::proto::Plan &plan, const plan::proto::Role &role, uint32_t rank, Transport *transport);
  /// Gives ends back in the order of channels: the two of one may have to leave together (ncclCommFinalize).
  ~Channels();
  Channels(const Channels &) = delete;
  Channels &operator=(const Channels &) = delete;

  SendingEnd &sending(uint32_t channel) const { return *sending_.at(channel); }
  ReceivingEnd &receiving(uint32_t channel) const { return *receiving_.at(channel); }
  uint64_t sentBytes() const noexcept;
  uint64_t receivedBytes() const noexcept;

private:
  const uint32_t count_;                                    // of the plan's
  std::map<uint32_t, std::unique_ptr<SendingEnd>> sending_; // by channel
  std::map<uint32_t, std::unique_ptr<ReceivingEnd>> receiving_;
};

} // namespace ds::runtime
