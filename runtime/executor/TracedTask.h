//===- TracedTask.h - --trace ---------------------------------------------===//
#pragma once

#include "runtime/executor/Command.h"
#include "runtime/trace/Trace.h"

#include <memory>
#include <string>

namespace ds::runtime {

/// What a timeline calls the command. `where`: the op that it implements.
TraceLabel traceLabel(const plan::proto::Command &command, const std::string &routine, const std::string &where);

/// A task that runs `inner` and notes when it began and ended. `row` is the command's queue's.
std::unique_ptr<Task> traced(Trace &trace, TraceRow &row, const plan::proto::Command &command,
                             const std::string &routine, const std::string &where, Task &inner);

} // namespace ds::runtime
