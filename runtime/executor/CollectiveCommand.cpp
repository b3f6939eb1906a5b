//===- CollectiveCommand.cpp - all ranks of a communicator at once --------===//
#include "core/DType.h"
#include "core/Status.h"
#include "runtime/comm/Communicator.h"
#include "runtime/device/Queue.h"
#include "runtime/device/Task.h"
#include "runtime/executor/Command.h"
#include "runtime/executor/Storage.h"
#include "runtime/plan/plan.pb.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

CollectiveKind kindOf(const plan::proto::CollectiveCommand &collective) {
  switch (collective.kind()) {
  case plan::proto::CollectiveCommand::REDUCE_SCATTER:
    return CollectiveKind::ReduceScatter;
  case plan::proto::CollectiveCommand::ALL_REDUCE:
    return CollectiveKind::AllReduce;
  case plan::proto::CollectiveCommand::BROADCAST:
    return CollectiveKind::Broadcast;
  case plan::proto::CollectiveCommand::ALL_TO_ALL:
    return CollectiveKind::AllToAll;
  default: // PlanReader refuses other numbers
    return CollectiveKind::AllGather;
  }
}

class CollectiveCommand final : public Command {
public:
  CollectiveCommand(const CommandContext &context, const plan::proto::CollectiveCommand &collective,
                    Communicator &communicator, std::string where)
      : where_(std::move(where)), communicator_(communicator) {
    for (const plan::proto::CollectivePart &part : collective.parts()) {
      const DType dtype = DType(part.source().dtype());
      addresses_.push_back({context.storage.operand(part.source()), context.storage.operand(part.target()),
                            part.has_scratch() ? context.storage.operand(part.scratch()) : Address{},
                            part.has_scratch() ? operandBytes(part.scratch()) : 0});
      parts_.push_back({.count = operandBytes(part.source()) / uint64_t(byteSize(dtype)),
                        .dtype = dtype,
                        .accumulate = part.accumulate()});
    }
    collective_ = {kindOf(collective), parts_, where_.c_str()};
  }

  Status run(const Call &call, Queue &queue) noexcept override {
    for (size_t i = 0; i < parts_.size(); ++i) {
      const Addresses &addresses = addresses_[i];
      parts_[i].source = addresses.source.at(call.microbatch);
      parts_[i].target = addresses.target.at(call.microbatch);
      parts_[i].scratch = {addresses.scratch.at(call.microbatch), addresses.scratchBytes};
    }
    collective_.stream = queue.streamHandle();
    return communicator_.run(collective_);
  }

private:
  struct Addresses {
    Address source, target, scratch;
    uint64_t scratchBytes;
  };

  const std::string where_;
  Communicator &communicator_;
  std::vector<Addresses> addresses_;
  std::vector<CollectivePart> parts_; // of the call being run
  Collective collective_{};           // other ranks look at it while they are in it
};

} // namespace

std::unique_ptr<Command> makeCollectiveCommand(const CommandContext &context,
                                               const plan::proto::CollectiveCommand &collective,
                                               Communicator &communicator, std::string where) {
  return std::make_unique<CollectiveCommand>(context, collective, communicator, std::move(where));
}

} // namespace ds::runtime
