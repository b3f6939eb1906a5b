//===- CopyCommand.cpp - copies between arenas, or within one -------------===//
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

class CopyCommand final : public Command {
public:
  CopyCommand(Address source, Address target, uint64_t bytes) : source_(source), target_(target), bytes_(bytes) {}

  Status run(const Call &call, Queue &queue) noexcept override {
    return queue.copy(target_.at(call.microbatch), source_.at(call.microbatch), bytes_);
  }

private:
  const Address source_, target_;
  const uint64_t bytes_;
};

} // namespace

std::unique_ptr<Command> makeCopyCommand(const CommandContext &context, const plan::proto::CopyCommand &copy) {
  return std::make_unique<CopyCommand>(context.storage.operand(copy.source()), context.storage.operand(copy.target()),
                                       operandBytes(copy.target()));
}

} // namespace ds::runtime
