//===- TensorObservers.cpp - shows what commands write, by tensor ---------===//
#include "runtime/bisect/TensorObservers.h"

#include "core/DType.h"
#include "core/Status.h"
#include "runtime/bisect/Correspondence.h"
#include "runtime/bisect/Tensor.h"
#include "runtime/bisect/WrittenTensors.h"
#include "runtime/device/Task.h"
#include "runtime/executor/HeldParts.h"
#include "runtime/executor/Run.h"
#include "runtime/executor/WriteObserver.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"
#include "runtime/plan/world/Placement.h"
#include "runtime/session/LocalRanks.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace ds::runtime {

TensorKey TensorObservers::translated(TensorKey key) const {
  if (names_ == nullptr)
    return key;
  if (key.isVariable)
    key.index = names_->variables()[key.index];
  if (key.op != TensorKey::input && key.phase != TensorKey::End)
    key.op = names_->ops()[size_t(key.op)];
  return key;
}

class TensorObservers::Observer final : public WriteObserver {
public:
  Observer(const ObservedCommand &command, std::vector<std::vector<WrittenTensor>> tensors, const PieceSink &sink)
      : command_(command), tensors_(std::move(tensors)), sink_(sink) {}

  Status wrote(const Call &call, size_t index, const std::byte *bytes) noexcept override try {
    for (const WrittenTensor &tensor : tensors_[index]) {
      TensorKey key = tensor.key;
      key.step = call.run->step + 1;
      const plan::proto::Program &program = command_.role.programs(int(call.run->program));
      key.microbatch = key.phase == TensorKey::Microbatch ? microbatchOf(command_, call.microbatch) : 0;
      sink_(key,
            {.first = tensor.first,
             .count = tensor.count,
             .elements = tensor.elements,
             .dtype = DType(command_.written[index]->dtype()),
             .writer = {command_.position.rank, command_.routine, command_.index, call.microbatch},
             .isAgain = program.has_tail() && call.index >= program.tail().first_call()},
            bytes + tensor.byteOffset);
    }
    return Status::success();
  } catch (const std::exception &error) {
    return Status::failure("%s: --bisect: %s", command_.where.c_str(), error.what());
  }

private:
  const ObservedCommand command_;
  const std::vector<std::vector<WrittenTensor>> tensors_;
  const PieceSink &sink_;
};

std::unique_ptr<WriteObserver> TensorObservers::observerOf(const ObservedCommand &command) {
  auto tensors = tensorsWrittenBy(command);
  if (std::ranges::all_of(tensors, [](const auto &one) { return one.empty(); }))
    return nullptr;
  for (auto &operand : tensors)
    for (WrittenTensor &tensor : operand)
      tensor.key = translated(tensor.key);
  return std::make_unique<Observer>(command, std::move(tensors), sink_);
}

void TensorObservers::showVariables(const plan::proto::Plan &plan, const LocalRanks &ranks, uint64_t stepsDone) const {
  std::vector<std::byte> bytes;
  for (uint32_t rank = 0; rank < plan::worldSize(plan); ++rank)
    for (const HeldPart &part : heldParts(plan, rank)) {
      const plan::proto::Variable &variable = plan.variables(int(part.variable));
      if (!isComparable(plan, variable))
        continue;
      const DType dtype = DType(variable.dtype());
      bytes.resize(part.count * uint64_t(byteSize(dtype)));
      ranks.find(rank)->read(part, 0, bytes);
      sink_(translated({.step = stepsDone, .phase = TensorKey::End, .isVariable = true, .index = part.variable}),
            {.first = part.first,
             .count = part.count,
             .elements = plan::elementsOf(variable),
             .dtype = dtype,
             .writer = {.rank = rank}},
            bytes.data());
    }
}

} // namespace ds::runtime
