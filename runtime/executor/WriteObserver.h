//===- WriteObserver.h - who looks at what commands have written ----------===//
//
// --check-numerics and ds-run --bisect. Without one, commands run as they are: the executor wraps nothing.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/Status.h"
#include "runtime/device/Task.h"
#include "runtime/executor/Command.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ds::runtime {

/// A command whose results may be looked at. The messages are the plan's and outlive the run.
struct ObservedCommand {
  const plan::proto::Plan &plan;
  const plan::proto::Role &role;
  plan::RankPosition position;
  uint32_t routine, index;
  std::string where;                                       ///< names it in errors
  std::vector<const plan::proto::Operand *> written, read; ///< read: by a kernel

  const plan::proto::Command &command() const { return role.routines(int(routine)).commands(int(index)); }
};

/// Looks at one command of one rank.
class WriteObserver {
public:
  virtual ~WriteObserver() = default;
  /// Whether it is shown what a command reads, too.
  virtual bool looksBefore() const noexcept { return false; }
  /// The command has not run yet: `bytes` are those of operand `index` of ObservedCommand::read. Otherwise as wrote.
  virtual void reads(const Call &, size_t, const std::byte *) noexcept {}
  /// The command has run: `bytes` are those of operand `index` of ObservedCommand::written, in the host's memory until
  /// the next call. A failure ends the run. Called by the thread of the command's queue, once for each operand.
  virtual Status wrote(const Call &call, size_t index, const std::byte *bytes) noexcept = 0;
};

/// Chooses what to look at.
class WriteObservers {
public:
  virtual ~WriteObservers() = default;
  /// nullptr: it does not look at this command.
  virtual std::unique_ptr<WriteObserver> observerOf(const ObservedCommand &command) = 0;
};

/// `inner`, or a task added to `wrappers` that runs it and then shows an observer what it wrote, if there is one.
Task *observed(WriteObservers &observers, const CommandContext &context, uint32_t routine, uint32_t index,
               const std::string &where, Task *inner, std::vector<std::unique_ptr<Task>> &wrappers);

} // namespace ds::runtime
