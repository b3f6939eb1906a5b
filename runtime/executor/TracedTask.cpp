//===- TracedTask.cpp - --trace -------------------------------------------===//
#include "runtime/executor/TracedTask.h"

#include "core/Status.h"
#include "runtime/device/Queue.h"
#include "runtime/device/Task.h"
#include "runtime/executor/Run.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/trace/Trace.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace ds::runtime {
namespace {

using ProtoCommand = plan::proto::Command;

int64_t nowNs() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

class TracedTask final : public Task {
public:
  TracedTask(const TraceLabel &label, TraceRow &row, Task &inner) : label_(label), row_(row), inner_(inner) {}

  Status run(const Call &call, Queue &queue) noexcept override {
    const int64_t begin = nowNs();
    Status status = inner_.run(call, queue);
    const std::byte *none = nullptr;
    if (status.ok())
      status = queue.look(none, 0); // an accelerator is done only now
    row_.add({&label_, begin, nowNs(), call.run->step, call.microbatch});
    return status;
  }

private:
  const TraceLabel &label_;
  TraceRow &row_;
  Task &inner_;
};

/// "all_gather" for ALL_GATHER.
std::string collectiveName(const plan::proto::CollectiveCommand &collective) {
  std::string name = plan::proto::CollectiveCommand::Kind_Name(collective.kind());
  for (char &letter : name)
    letter = letter == '_' ? '_' : char(letter - 'A' + 'a');
  return name;
}

} // namespace

TraceLabel traceLabel(const ProtoCommand &command, const std::string &routine, const std::string &where) {
  switch (command.kind_case()) {
  case ProtoCommand::kKernel:
    return {command.kernel().kernel(), "kernel", where, routine};
  case ProtoCommand::kFill:
    return {"fill", "fill", where, routine};
  case ProtoCommand::kCopy:
    return {"copy", "copy", where, routine};
  case ProtoCommand::kFeed:
    return {"feed", "feed", where, routine};
  case ProtoCommand::kCollective:
    return {collectiveName(command.collective()), "collective", where, routine};
  case ProtoCommand::kSend:
    return {"send", "message", where, routine};
  case ProtoCommand::kReceive:
    return {"receive", "message", where, routine};
  case ProtoCommand::KIND_NOT_SET:
    break;
  }
  return {};
}

std::unique_ptr<Task> traced(Trace &trace, TraceRow &row, const ProtoCommand &command, const std::string &routine,
                             const std::string &where, Task &inner) {
  return std::make_unique<TracedTask>(trace.addLabel(traceLabel(command, routine, where)), row, inner);
}

} // namespace ds::runtime
