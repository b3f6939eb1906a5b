//===- WrittenTensors.cpp - which tensors a command writes ----------------===//
#include "runtime/bisect/WrittenTensors.h"

#include "core/DType.h"
#include "core/Shape.h"
#include "kernels/ElementwiseProgram.h"
#include "runtime/executor/Command.h"
#include "runtime/executor/HeldParts.h"
#include "runtime/executor/WrittenOperands.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"
#include "runtime/plan/world/Placement.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace ds::runtime {
namespace {

namespace proto = plan::proto;
using Tensors = std::vector<WrittenTensor>;

template <typename Message> uint64_t elementsOf(const Message &message) {
  return uint64_t(elementCount({message.shape().data(), size_t(message.shape_size())}));
}

class Finder {
public:
  explicit Finder(const ObservedCommand &command)
      : observed_(command), plan_(command.plan), command_(command.command()) {}

  Tensors of(size_t written) const {
    const proto::Operand &operand = *observed_.written[written];
    if (command_.has_feed())
      return {
          {{.op = TensorKey::input, .index = command_.feed().input()}, 0, elementsOf(operand), elementsOf(operand)}};
    if (command_.reference_size() == 0)
      return {};
    if (const proto::Buffer &buffer = observed_.role.buffers(int(plan::stateOf(observed_.role, operand.buffer())));
        buffer.scope() == proto::Buffer::PLAN && (buffer.has_variable() || buffer.has_bucket()))
      return ofHeld(operand);
    if (command_.has_collective())
      return ofSum(operand);
    return command_.has_kernel() ? ofKernel(operand, written) : Tensors();
  }

private:
  const proto::ReferenceOp &op(uint32_t index) const { return plan_.reference().ops(int(index)); }

  /// What a variable is after one of the command's ops that names it.
  std::optional<TensorKey> keyOf(uint32_t variable) const {
    for (const uint32_t reference : command_.reference())
      if (std::ranges::count(op(reference).variables(), variable) > 0)
        return TensorKey{.phase = phaseOf(op(reference)), .op = reference, .isVariable = true, .index = variable};
    return std::nullopt;
  }

  static TensorKey::Phase phaseOf(const proto::ReferenceOp &op) {
    return op.function() == "update" ? TensorKey::Update : TensorKey::Microbatch;
  }

  /// Of a buffer that outlives the run: the parts of variables that lie within the operand.
  Tensors ofHeld(const proto::Operand &operand) const {
    const uint64_t begin = plan::operandOffset(plan_, operand, observed_.position.rank);
    const uint64_t end = begin + operandBytes(operand);
    Tensors tensors;
    for (const HeldPart &part : heldParts(plan_, observed_.position.rank)) {
      const proto::Variable &variable = plan_.variables(int(part.variable));
      const auto size = uint64_t(byteSize(DType(variable.dtype())));
      const uint64_t from = std::max(begin, part.byteOffset), to = std::min(end, part.byteOffset + part.count * size);
      const auto key = keyOf(part.variable);
      if (part.buffer == plan::stateOf(observed_.role, operand.buffer()) && from < to && key &&
          isComparable(plan_, variable))
        tensors.push_back({*key, part.first + (from - part.byteOffset) / size, (to - from) / size, elementsOf(variable),
                           from - begin});
    }
    return tensors;
  }

  /// A sum over the ranks: of a loss, or this rank's slice of a bucket of gradients.
  Tensors ofSum(const proto::Operand &target) const {
    const proto::CollectiveCommand &collective = command_.collective();
    const proto::ReferenceOp &first = op(command_.reference(0));
    if (first.op() != "train.accumulate" || first.variables_size() != 1)
      return {};
    if (collective.kind() == proto::CollectiveCommand::ALL_REDUCE && command_.reference_size() == 1)
      return ofVariable(target, command_.reference(0));
    if (collective.kind() != proto::CollectiveCommand::REDUCE_SCATTER)
      return {};
    const plan::Group group(plan_, collective.communicator());
    const uint64_t count = elementsOf(target), begin = group.coordinate(observed_.position.rank) * count;
    const auto bytesOf = [](proto::DType dtype) { return uint64_t(byteSize(DType(dtype))); };
    Tensors tensors;
    for (const proto::Bucket &bucket : plan_.buckets())
      if (bucket.elements() == group.size() * count)
        for (const plan::Held &held : plan::membersWithin(plan_, bucket, begin, count))
          if (const auto key = keyOf(held.variable)) {
            const proto::Variable &variable = plan_.variables(int(held.variable));
            uint64_t element = held.byte / bytesOf(bucket.dtype()); // the sum may be of another type than the bucket
            for (const plan::Run &run :
                 plan::wholeElements(plan_, variable, observed_.position.rank, held.first, held.count)) {
              tensors.push_back({*key, run.first, run.count, elementsOf(variable), element * bytesOf(target.dtype())});
              element += run.count;
            }
          }
    return tensors;
  }

  /// All of the variable that the op names.
  Tensors ofVariable(const proto::Operand &operand, uint32_t reference) const {
    const uint32_t variable = op(reference).variables(0);
    if (elementsOf(plan_.variables(int(variable))) != elementsOf(operand))
      return {};
    return {{*keyOf(variable), 0, elementsOf(operand), elementsOf(operand)}};
  }

  Tensors ofKernel(const proto::Operand &operand, size_t written) const {
    const uint32_t only = command_.reference(0);
    if (command_.reference_size() == 1 && op(only).results_size() == 0) {
      const bool isPartOfSum = op(only).function() == "microbatch" && observed_.position.batchRanks > 1;
      return op(only).variables_size() == 1 && !isPartOfSum ? ofVariable(operand, only) : Tensors();
    }
    if (command_.kernel().kernel() == "elementwise")
      return ofElementwise(operand, written);
    return command_.reference_size() == 1 ? ofResult(operand, only, uint32_t(written)) : Tensors();
  }

  Tensors ofResult(const proto::Operand &operand, uint32_t reference, uint32_t result) const {
    if (int(result) >= op(reference).results_size())
      return {};
    const proto::ReferenceValue &value = plan_.reference().values(int(op(reference).results(int(result))));
    if (elementsOf(value) != elementsOf(operand) || value.dtype() != operand.dtype())
      return {};
    return {{{.phase = phaseOf(op(reference)), .op = reference, .index = result},
             0,
             elementsOf(operand),
             elementsOf(operand)}};
  }

  /// Ops that were fused stand in the order of the program's instructions, constants apart.
  Tensors ofElementwise(const proto::Operand &operand, size_t written) const {
    const auto integers = [this](std::string_view name) {
      for (const proto::Attribute &attribute : command_.kernel().attributes())
        if (attribute.name() == name)
          return std::vector<int64_t>(attribute.integers().values().begin(), attribute.integers().values().end());
      return std::vector<int64_t>();
    };
    const std::vector<int64_t> program = integers("program"), results = integers("results");
    if (written >= results.size())
      return {};
    const int64_t inputs = command_.kernel().operands_size() - int64_t(results.size());
    int computed = 0, wanted = -1;
    for (size_t at = 0; at < program.size(); at += kernels::elementwiseInstructionWidth) {
      if (program[at] == int64_t(kernels::ElementwiseOp::Constant))
        continue;
      if (results[written] == inputs + int64_t(at) / kernels::elementwiseInstructionWidth)
        wanted = computed;
      ++computed;
    }
    if (computed != command_.reference_size() || wanted < 0)
      return {};
    return ofResult(operand, command_.reference(wanted), 0);
  }

  const ObservedCommand &observed_;
  const proto::Plan &plan_;
  const proto::Command &command_;
};

} // namespace

std::vector<std::vector<WrittenTensor>> tensorsWrittenBy(const ObservedCommand &command) {
  std::vector<Tensors> tensors;
  for (size_t i = 0; i < command.written.size(); ++i)
    tensors.push_back(Finder(command).of(i));
  return tensors;
}

uint64_t microbatchOf(const ObservedCommand &command, uint64_t microStep) {
  return command.command().has_collective() ? (microStep + 1) * command.position.batchRanks - 1
                                            : command.position.globalMicrobatch(microStep);
}

bool isComparable(const proto::Plan &plan, const proto::Variable &variable) {
  return variable.kind() != proto::Variable::CONSTANT && variable.kind() != proto::Variable::GRADIENT &&
         plan::versionsOf(plan, variable) == 1;
}

} // namespace ds::runtime
