//===- Command.h - from a plan's commands to tasks ------------------------===//
//
// One file per kind of command: KernelCommand.cpp, FillCommand.cpp, CopyCommand.cpp, FeedCommand.cpp,
// CollectiveCommand.cpp, SendCommand.cpp, ReceiveCommand.cpp. A command is made at prepare (names and addresses
// resolved), initialized once (primitives built) and run with every call.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/Status.h"
#include "kernels/KernelRegistry.h"
#include "runtime/comm/Communicator.h"
#include "runtime/device/Device.h"
#include "runtime/device/Task.h"
#include "runtime/executor/Channels.h"
#include "runtime/executor/Communicators.h"
#include "runtime/executor/Storage.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"

#include <cstdint>
#include <memory>
#include <string>

namespace ds::runtime {

/// What all commands of a rank are made from. All of it outlives them.
struct CommandContext {
  const plan::proto::Plan &plan;
  const plan::proto::Role &role;
  const Storage &storage;
  const kernels::KernelRegistry *kernels; ///< of whatever runs the command being made
  kernels::BuildOptions build;
  plan::RankPosition position;
  const Communicators &communicators;
  const Channels &channels;
  Device &device;
  uint32_t caller = 0; ///< number of the command being made, among all of the rank's
};

class Command : public Task {
public:
  /// Acquires what running needs; throws ds::Error.
  virtual void initialize() {}
  /// What of run() the host does anew for a run that is launched as it was recorded: a feed reads its data.
  virtual Status stage(const Call &call) noexcept { return Status::success(); }
  /// The failure that a value refused by its kernel stands for.
  virtual Status refusal(int64_t value) const noexcept { return Status::failure("a value was refused"); }
};

/// `where` names the command in errors.
std::unique_ptr<Command> makeKernelCommand(const CommandContext &, const plan::proto::KernelCommand &,
                                           std::string where);
std::unique_ptr<Command> makeFillCommand(const CommandContext &, const plan::proto::FillCommand &);
std::unique_ptr<Command> makeCopyCommand(const CommandContext &, const plan::proto::CopyCommand &);
std::unique_ptr<Command> makeFeedCommand(const CommandContext &, const plan::proto::FeedCommand &);

std::unique_ptr<Command> makeCollectiveCommand(const CommandContext &, const plan::proto::CollectiveCommand &,
                                               Communicator &, std::string where);
std::unique_ptr<Command> makeSendCommand(const CommandContext &, const plan::proto::SendCommand &, std::string where);
std::unique_ptr<Command> makeReceiveCommand(const CommandContext &, const plan::proto::ReceiveCommand &,
                                            std::string where);

/// The command of whatever kind.
std::unique_ptr<Command> makeCommand(const CommandContext &, const plan::proto::Command &, const std::string &where);

/// Bytes of a validated operand.
uint64_t operandBytes(const plan::proto::Operand &operand);

} // namespace ds::runtime
