//===- Command.cpp - from a plan's commands to tasks ----------------------===//
#include "runtime/executor/Command.h"

#include "core/DType.h"
#include "core/Error.h"
#include "core/Shape.h"
#include "runtime/plan/plan.pb.h"
#include <cstdint>
#include <memory>
#include <string>

namespace ds::runtime {

std::unique_ptr<Command> makeCommand(const CommandContext &context, const plan::proto::Command &command,
                                     const std::string &where) {
  switch (command.kind_case()) {
  case plan::proto::Command::kKernel:
    return makeKernelCommand(context, command.kernel(), where);
  case plan::proto::Command::kFill:
    return makeFillCommand(context, command.fill());
  case plan::proto::Command::kCopy:
    return makeCopyCommand(context, command.copy());
  case plan::proto::Command::kFeed:
    return makeFeedCommand(context, command.feed());
  case plan::proto::Command::kCollective:
    return makeCollectiveCommand(context, command.collective(),
                                 context.communicators.find(command.collective().communicator(),
                                                            context.role.queues(int(command.queue())).kind()),
                                 where);
  case plan::proto::Command::kSend:
    return makeSendCommand(context, command.send(), where);
  case plan::proto::Command::kReceive:
    return makeReceiveCommand(context, command.receive(), where);
  case plan::proto::Command::KIND_NOT_SET:
    break;
  }
  throw Error(where + ": a command of a kind that this build does not know");
}

uint64_t operandBytes(const plan::proto::Operand &operand) {
  return uint64_t(elementCount({operand.shape().data(), size_t(operand.shape_size())})) *
         uint64_t(byteSize(DType(operand.dtype())));
}

} // namespace ds::runtime
