//===- StateGate.cpp - state that is copied while a run goes on -----------===//
#include "runtime/executor/StateGate.h"

#include "core/Status.h"
#include "runtime/device/Queue.h"
#include "runtime/device/Task.h"
#include "runtime/executor/HeldParts.h"
#include "runtime/executor/WrittenOperands.h"
#include "runtime/plan/format/Lengths.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"
#include "runtime/plan/world/Placement.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace ds::runtime {
namespace {

class GatedTask final : public Task {
public:
  GatedTask(StateGate &gate, size_t parts, Task &inner) : gate_(gate), parts_(parts), inner_(inner) {}

  Status run(const Call &call, Queue &queue) noexcept override {
    gate_.wait(parts_);
    return inner_.run(call, queue);
  }

private:
  StateGate &gate_;
  const size_t parts_;
  Task &inner_;
};

} // namespace

std::vector<HeldPart> inOrderOfWrites(const plan::proto::Plan &plan, uint32_t rank, std::vector<HeldPart> parts) {
  const plan::proto::Role &role = plan::roleOfRank(plan, rank);
  std::vector<size_t> written(size_t(role.buffers_size()), SIZE_MAX); // by buffer, in the order of commands
  size_t next = 0;
  for (const plan::proto::Program &program : role.programs())
    for (const plan::proto::Call &call : program.calls())
      for (const plan::proto::Command &command : role.routines(int(call.routine())).commands())
        for (const plan::proto::Operand *operand : writtenBy(command))
          if (size_t &first = written[plan::stateOf(role, operand->buffer())];
              plan::isProgram(program.name(), "step") && first == SIZE_MAX)
            first = next++;
  std::ranges::stable_sort(parts, {}, [&](const HeldPart &part) { return written[part.buffer]; });
  return parts;
}

StateGate::StateGate(const plan::proto::Role &role, std::span<const HeldPart> parts)
    : needed_(size_t(role.buffers_size()), 0) {
  for (size_t i = 0; i < parts.size(); ++i)
    needed_[parts[i].buffer] = i + 1;
  for (uint32_t buffer = 0; buffer < needed_.size(); ++buffer)
    needed_[buffer] = needed_[plan::stateOf(role, buffer)];
}

Task *StateGate::around(const plan::proto::Command &command, Task &inner,
                        std::vector<std::unique_ptr<Task>> &wrappers) {
  size_t needed = 0;
  for (const plan::proto::Operand *operand : writtenBy(command))
    needed = std::max(needed, needed_[operand->buffer()]);
  return needed == 0 ? &inner : wrappers.emplace_back(std::make_unique<GatedTask>(*this, needed, inner)).get();
}

void StateGate::copied(size_t parts) noexcept {
  copied_ = parts;
  point_.notify();
}

void StateGate::wait(size_t parts) noexcept {
  if (copied_ >= parts)
    return;
  asked_();
  point_.wait([&] { return copied_ >= parts; });
}

} // namespace ds::runtime
