//===- ObservedTask.cpp - runs a command and shows what it wrote ----------===//
#include "core/Status.h"
#include "runtime/device/Queue.h"
#include "runtime/device/Task.h"
#include "runtime/executor/Command.h"
#include "runtime/executor/Storage.h"
#include "runtime/executor/WriteObserver.h"
#include "runtime/executor/WrittenOperands.h"
#include "runtime/plan/plan.pb.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

class ObservedTask final : public Task {
public:
  ObservedTask(std::unique_ptr<WriteObserver> observer, const CommandContext &context, const ObservedCommand &told,
               Task &inner)
      : observer_(std::move(observer)), inner_(inner) {
    for (const plan::proto::Operand *operand : told.written)
      written_.emplace_back(context.storage.operand(*operand), operandBytes(*operand));
    if (observer_->looksBefore())
      for (const plan::proto::Operand *operand : told.read)
        read_.emplace_back(context.storage.operand(*operand), operandBytes(*operand));
  }

  Status run(const Call &call, Queue &queue) noexcept override {
    for (size_t i = 0; i < read_.size(); ++i) {
      const std::byte *bytes = read_[i].first.at(call.microbatch);
      if (Status status = queue.look(bytes, read_[i].second); !status.ok())
        return status;
      observer_->reads(call, i, bytes);
    }
    if (Status status = inner_.run(call, queue); !status.ok())
      return status;
    for (size_t i = 0; i < written_.size(); ++i) {
      const std::byte *bytes = written_[i].first.at(call.microbatch);
      if (Status status = queue.look(bytes, written_[i].second); !status.ok())
        return status;
      if (Status status = observer_->wrote(call, i, bytes); !status.ok())
        return status;
    }
    return Status::success();
  }

private:
  const std::unique_ptr<WriteObserver> observer_;
  Task &inner_;
  std::vector<std::pair<Address, uint64_t>> written_, read_; // and their bytes
};

} // namespace

Task *observed(WriteObservers &observers, const CommandContext &context, uint32_t routine, uint32_t index,
               const std::string &where, Task *inner, std::vector<std::unique_ptr<Task>> &wrappers) {
  const plan::proto::Command &command = context.role.routines(int(routine)).commands(int(index));
  const ObservedCommand told{context.plan, context.role, context.position,   routine,
                             index,        where,        writtenBy(command), readBy(command.kernel())};
  std::unique_ptr<WriteObserver> observer = observers.observerOf(told);
  if (observer == nullptr)
    return inner;
  return wrappers.emplace_back(std::make_unique<ObservedTask>(std::move(observer), context, told, *inner)).get();
}

} // namespace ds::runtime
