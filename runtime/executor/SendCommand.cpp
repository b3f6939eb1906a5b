//===- SendCommand.cpp - a message to another rank -----------------------===//
#include "core/Status.h"
#include "runtime/comm/Channel.h"
#include "runtime/device/Queue.h"
#include "runtime/device/Task.h"
#include "runtime/executor/Command.h"
#include "runtime/executor/Storage.h"
#include "runtime/plan/plan.pb.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

class SendCommand final : public Command {
public:
  SendCommand(const CommandContext &context, const plan::proto::SendCommand &send, std::string where)
      : where_(std::move(where)), end_(context.channels.sending(send.channel())) {
    for (const plan::proto::Operand &operand : send.sources())
      sources_.emplace_back(context.storage.operand(operand), operandBytes(operand));
    parts_.resize(sources_.size());
  }

  Status run(const Call &call, Queue &queue) noexcept override {
    for (size_t i = 0; i < parts_.size(); ++i)
      parts_[i] = {sources_[i].first.at(call.microbatch), sources_[i].second};
    return end_.send(parts_, where_.c_str(), queue.streamHandle());
  }

private:
  const std::string where_;
  SendingEnd &end_;
  std::vector<std::pair<Address, uint64_t>> sources_; // and their bytes
  std::vector<std::span<const std::byte>> parts_;     // of the call being run; the receiver looks at it
};

} // namespace

std::unique_ptr<Command> makeSendCommand(const CommandContext &context, const plan::proto::SendCommand &send,
                                         std::string where) {
  return std::make_unique<SendCommand>(context, send, std::move(where));
}

} // namespace ds::runtime
