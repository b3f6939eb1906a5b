//===- FillCommand.cpp - zeros an operand ---------------------------------===//
#include "core/Status.h"
#include "runtime/device/Queue.h"
#include "runtime/device/Task.h"
#include "runtime/executor/Command.h"
#include "runtime/executor/Storage.h"
#include "runtime/plan/plan.pb.h"
#include <cstdint>
#include <memory>

namespace ds::runtime {
namespace {

class FillCommand final : public Command {
public:
  FillCommand(Address target, uint64_t bytes) : target_(target), bytes_(bytes) {}

  Status run(const Call &call, Queue &queue) noexcept override {
    queue.fill(target_.at(call.microbatch), 0, bytes_);
    return Status::success();
  }

private:
  const Address target_;
  const uint64_t bytes_;
};

} // namespace

std::unique_ptr<Command> makeFillCommand(const CommandContext &context, const plan::proto::FillCommand &fill) {
  return std::make_unique<FillCommand>(context.storage.operand(fill.target()), operandBytes(fill.target()));
}

} // namespace ds::runtime
