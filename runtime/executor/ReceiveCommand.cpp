//===- ReceiveCommand.cpp - a message from another rank ------------------===//
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

class ReceiveCommand final : public Command {
public:
  ReceiveCommand(const CommandContext &context, const plan::proto::ReceiveCommand &receive, std::string where)
      : where_(std::move(where)), end_(context.channels.receiving(receive.channel())) {
    for (const plan::proto::Operand &operand : receive.targets())
      targets_.emplace_back(context.storage.operand(operand), operandBytes(operand));
    parts_.resize(targets_.size());
  }

  Status run(const Call &call, Queue &queue) noexcept override {
    for (size_t i = 0; i < parts_.size(); ++i)
      parts_[i] = {targets_[i].first.at(call.microbatch), targets_[i].second};
    return end_.receive(parts_, where_.c_str(), queue.streamHandle());
  }

private:
  const std::string where_;
  ReceivingEnd &end_;
  std::vector<std::pair<Address, uint64_t>> targets_; // and their bytes
  std::vector<std::span<std::byte>> parts_;           // of the call being run
};

} // namespace

std::unique_ptr<Command> makeReceiveCommand(const CommandContext &context, const plan::proto::ReceiveCommand &receive,
                                            std::string where) {
  return std::make_unique<ReceiveCommand>(context, receive, std::move(where));
}

} // namespace ds::runtime
