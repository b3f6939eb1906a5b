//===- MeaningRules.cpp - commands compute what they are said to ----------===//
#include "compiler/check/MeaningRules.h"

#include "compiler/check/GradientRules.h"
#include "compiler/check/NormRules.h"
#include "kernels/KernelRows.h"
#include "runtime/plan/world/Mesh.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace ds::check {

namespace {

/// Whether a command is of the update, which reads stored gradients that were summed over the ranks.
bool isOfUpdate(const proto::Plan &plan, const proto::Command &command) {
  return std::ranges::any_of(command.reference(), [&](uint32_t reference) {
    return plan.reference().ops(int(reference)).function() == "update";
  });
}

/// The value that bytes hold for a command: among sums of gradients it is that of the command's micro-batch alone, not
/// added to another's or to another rank's.
uint32_t ownValue(const RankMemory &memory, uint32_t value, const Contents &contents, const Instance &instance) {
  if (!memory.context.changes.isOfMicrobatch(value))
    return value;
  const uint64_t microbatch = instance.microbatch;
  const bool maySum = isOfUpdate(memory.plan(), *instance.command);
  const auto isOwn = [&](const OperandSegment &segment) {
    return maySum ? std::ranges::all_of(segment.contributions,
                                        [&](const Contribution &one) { return one.microbatch == microbatch; })
                  : RankMemory::microbatchOf(segment, microbatch) == microbatch;
  };
  return std::ranges::all_of(contents.segments, isOwn) ? value : uint32_t(Values::other);
}

/// A collective that is said to accumulate is a sum over all ranks that have micro-batches.
void requireSum(RankMemory &memory, const Instance &instance, std::span<const uint32_t> held) {
  const proto::Plan &plan = memory.plan();
  const proto::Command &command = *instance.command;
  const uint64_t microbatch = instance.microbatch;
  const proto::CollectiveCommand &collective = command.collective();
  for (uint32_t reference : command.reference()) {
    const proto::ReferenceOp &op = plan.reference().ops(int(reference));
    if (op.op() != "train.accumulate")
      continue;
    if (!sums(collective))
      throw Mismatch{"it is no sum, but is said to be " + op.op()};
    if (plan::axesOf(plan, collective.communicator()) != plan::batchAxes(plan))
      throw Mismatch{"it sums over the " + std::to_string(plan::Group(plan, collective.communicator()).size()) +
                     " ranks of communicator " + plan.communicators(int(collective.communicator())).name() +
                     ", not over those that have micro-batches of their own"};
    // Of gradients, which lie in buckets, the optimizer asks what they are sums of.
    const uint32_t added = memory.values().of(op.operands(0));
    if (plan.variables(int(op.variables(0))).kind() == proto::Variable::GRADIENT)
      continue;
    const auto part = std::ranges::find_if(collective.parts(), [&](const proto::CollectivePart &one) {
      const Contents source = memory.contentsOf(one.source(), microbatch);
      return mayBe(ownValue(memory, memory.valueIn(one.source(), source), source, instance), added);
    });
    if (part == collective.parts().end())
      throw Mismatch{"it sums " + memory.values().name(held[0]) + ", but " + op.op() + " adds " +
                     memory.values().name(added)};
  }
}

void requireCommand(RankMemory &memory, const std::vector<Contents> &read, std::span<const uint32_t> held,
                    size_t index) {
  const Instance &instance = memory.instance(index);
  const proto::Command &command = *instance.command;
  if (isOptimizer(command))
    requireGradient(memory, read, held, index);
  if (command.has_kernel() && command.kernel().kernel() == kernels::kernel<"block_sum_squares">.name)
    requireSummed(memory, read[0], index);
  if (command.has_kernel() && command.kernel().kernel() == kernels::kernel<"global_norm">.name)
    requireNorm(memory, held, index);
  if (command.has_collective())
    requireSum(memory, instance, held);
  if (command.has_collective() && sums(command.collective()))
    for (const proto::CollectivePart &part : command.collective().parts())
      requireSumType(memory, part.source(), memory.contentsOf(part.source(), instance.microbatch), index);
}

/// What an operand of a kernel holds: a value whole, of its own element type, or parts of values.
uint32_t wholeValue(const RankMemory &memory, const proto::Operand &operand, uint32_t held) {
  const ValueType &type = memory.values().type(held);
  const bool isTyped = held > Values::other && type.dtype != proto::DTYPE_UNSPECIFIED;
  if (isTyped && (operand.dtype() != type.dtype || (type.elements && *type.elements != elementsIn(shapeOf(operand)))))
    return Values::other;
  return held;
}

/// What a kernel finds in an operand as a value.
uint32_t valueFor(const RankMemory &memory, const proto::Operand &operand, const Contents &contents,
                  const Instance &instance) {
  return ownValue(memory, wholeValue(memory, operand, memory.valueIn(operand, contents)), contents, instance);
}

/// In a closed world a kernel reads nothing of which nothing is known. Optimizers ask byte by byte.
void requireKnown(const RankMemory &memory, const proto::Command &command, const std::vector<Effect> &effects,
                  std::span<const uint32_t> held) {
  if (!memory.context.meaning.isClosed() || isOptimizer(command))
    return;
  for (size_t i = 0; i < effects.size(); ++i)
    if (effects[i].reads && held[i] == Values::unknown)
      throw Mismatch{"operand " + std::to_string(i) + " holds something of which nothing is known"};
}

/// The effect that takes a micro-batch into a variable, whose element type and size it has.
size_t targetOf(const proto::Command &command, const proto::ReferenceOp &op, const std::vector<Effect> &effects) {
  const auto target = std::ranges::find_if(effects, &Effect::writes);
  if (command.kernel().kernel() != kernels::kernel<"elementwise">.name ||
      std::ranges::count_if(effects, &Effect::writes) != 1)
    throw Mismatch{"it is no elementwise kernel that writes one operand, as " + op.op() + " needs"};
  return size_t(target - effects.begin());
}

/// What a kernel makes. One that takes its micro-batch into a variable finds it there as any other does.
std::vector<Meaning::Result> resultsOfKernel(RankMemory &memory, const std::vector<Effect> &effects,
                                             std::vector<uint32_t> held, size_t index) {
  const Instance &instance = memory.instance(index);
  const proto::Command &command = *instance.command;
  Meaning &meaning = memory.context.meaning;
  if (command.reference_size() != 1)
    return meaning.resultsOf(command, held);
  const proto::ReferenceOp &op = memory.plan().reference().ops(int(command.reference(0)));
  if (!countsMicrobatches(memory.plan(), op))
    return meaning.resultsOf(command, held);
  const size_t target = targetOf(command, op, effects);
  const Range range = memory.rangeOf(*effects[target].operand, instance.microbatch);
  for (size_t e = 0; e < effects.size(); ++e)
    if (effects[e].reads && held[e] != Values::other &&
        memory.rangeOf(*effects[e].operand, instance.microbatch) == range)
      held[e] = memory.values().variable(op.variables(0));
  std::vector<Meaning::Result> results = meaning.resultsOf(command, held);
  results[target].value =
      withMicrobatch(memory, op, memory.valueIn(*effects[target].operand, instance.microbatch), index);
  return results;
}

/// The same, where a micro-batch that changes a statistic may read it before and behind that.
std::vector<Meaning::Result> resultsOfReader(RankMemory &memory, const std::vector<Effect> &effects,
                                             const std::vector<uint32_t> &held, size_t index) {
  try {
    return resultsOfKernel(memory, effects, held, index);
  } catch (const Mismatch &) {
    std::vector<uint32_t> read = held;
    for (uint32_t &value : read)
      value = memory.context.changes.asRead(value, memory.instance(index).microbatch);
    if (read == held)
      throw;
    return resultsOfKernel(memory, effects, read, index);
  }
}

} // namespace

uint32_t withMicrobatch(const RankMemory &memory, const proto::ReferenceOp &op, uint32_t before, size_t index) {
  const StateChanges &changes = memory.context.changes;
  const uint64_t microbatch = memory.instance(index).microbatch;
  const std::string &program = memory.context.program.name();
  if (std::ranges::count(functionsOf(program), op.function()) == 0)
    memory.refuse("meaning", index,
                  "names " + op.op() + " of function " + op.function() + ", which program " + program +
                      " does not run");
  if (const uint32_t expected = changes.before(op, microbatch); !mayBe(before, expected))
    memory.refuse("coverage", index,
                  "takes micro-batch " + std::to_string(microbatch) + " into " + memory.values().name(before) +
                      ", not into " + memory.values().name(expected));
  return changes.behind(op, microbatch);
}

std::vector<Meaning::Result> requireMeaning(RankMemory &memory, const std::vector<Effect> &effects,
                                            const std::vector<Contents> &read, size_t index) {
  const Instance &instance = memory.instance(index);
  const proto::Command &command = *instance.command;
  std::vector<uint32_t> held;
  for (size_t e = 0; e < effects.size(); ++e) {
    const proto::Operand &operand = *effects[e].operand;
    if (!effects[e].reads)
      held.push_back(Values::unknown);
    else
      held.push_back(command.has_kernel() ? valueFor(memory, operand, read[e], instance)
                                          : memory.valueIn(operand, read[e]));
  }
  try {
    requireCommand(memory, read, held, index);
    if (command.has_kernel())
      requireKnown(memory, command, effects, held);
    if (command.has_kernel())
      return resultsOfReader(memory, effects, held, index);
  } catch (const Mismatch &mismatch) {
    memory.refuse("meaning", index, mismatch.sentence);
  }
  std::vector<Meaning::Result> results(effects.size());
  if (command.has_fill())
    results[0].value = memory.values().zero();
  if (command.has_feed()) {
    const proto::Input &input = memory.plan().inputs(int(command.feed().input()));
    results[0].value = memory.values().input(input.name(), typeOf(input));
  }
  return results;
}

} // namespace ds::check
