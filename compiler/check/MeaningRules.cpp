//===- MeaningRules.cpp - commands compute what they are said to ----------===//
#include "compiler/check/MeaningRules.h"

#include "compiler/check/Distribution.h"
#include "compiler/check/GradientRules.h"
#include "kernels/KernelRows.h"
#include "runtime/plan/Groups.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace ds::check {

namespace {

/// What a norm is the root of counts no bytes twice.
void requireEachPartOnce(const RankMemory &memory, const proto::KernelCommand &kernel, uint64_t microbatch) {
  std::vector<Range> parts;
  for (const proto::Operand &operand : kernel.operands())
    if (operand.access() == proto::Operand::READ)
      parts.push_back(memory.rangeOf(operand, microbatch));
  std::ranges::sort(parts, {}, [](const Range &part) { return std::pair(part.arena, part.begin); });
  for (size_t i = 1; i < parts.size(); ++i)
    if (parts[i].arena == parts[i - 1].arena && parts[i].begin < parts[i - 1].end)
      throw Mismatch{"it counts a part of the gradients twice"};
}

/// And it counts every gradient, where that is known.
void requireEveryPart(const RankMemory &memory, const proto::Command &command, std::span<const uint32_t> held) {
  if (!memory.followsAll() || command.reference_size() != 1)
    return;
  Values &values = memory.values();
  std::vector<uint32_t> missing;
  for (uint32_t operand : memory.plan().reference().ops(int(command.reference(0))).operands())
    missing.push_back(values.of(operand));
  for (int i = 0; i < command.kernel().operands_size(); ++i) {
    if (command.kernel().operands(i).access() != proto::Operand::READ || held[size_t(i)] == values.constant(0))
      continue;
    const auto found = std::ranges::find(missing, held[size_t(i)]);
    if (held[size_t(i)] == Values::unknown)
      return; // of slices, which have no number
    if (found == missing.end())
      throw Mismatch{"operand " + std::to_string(i) + " holds " + values.name(held[size_t(i)]) +
                     ", which is no part of the norm or was counted"};
    missing.erase(found);
  }
  if (!missing.empty())
    throw Mismatch{"it lacks " + values.name(missing[0])};
}

/// A collective that is said to accumulate is a sum over all ranks that have micro-batches.
void requireSum(const RankMemory &memory, const proto::Command &command, std::span<const uint32_t> held) {
  const proto::Plan &plan = memory.plan();
  const proto::CollectiveCommand &collective = command.collective();
  for (uint32_t reference : command.reference()) {
    const proto::ReferenceOp &op = plan.reference().ops(int(reference));
    if (op.op() != "train.accumulate")
      continue;
    if (collective.kind() != proto::CollectiveCommand::ALL_REDUCE &&
        collective.kind() != proto::CollectiveCommand::REDUCE_SCATTER)
      throw Mismatch{"it is no sum, but is said to be " + op.op()};
    if (!joinsDataRanks(plan, collective.communicator()))
      throw Mismatch{"it sums over the " + std::to_string(plan::groupSize(plan, collective.communicator())) +
                     " ranks of communicator " + plan.communicators(int(collective.communicator())).name() +
                     ", not over those that have micro-batches, along axis data"};
    // Of gradients, which lie in buckets, the optimizer asks what they are sums of.
    const uint32_t added = memory.values().of(op.operands(0));
    if (plan.variables(int(op.variables(0))).kind() != proto::Variable::GRADIENT && collective.parts_size() == 1 &&
        !mayBe(held[0], added))
      throw Mismatch{"it sums " + memory.values().name(held[0]) + ", but " + op.op() + " adds " +
                     memory.values().name(added)};
  }
}

void requireCommand(RankMemory &memory, std::span<const uint32_t> held, size_t index) {
  const Instance &instance = memory.instance(index);
  const proto::Command &command = *instance.command;
  if (isOptimizer(command))
    requireGradient(memory, held, index);
  if (command.has_kernel() && command.kernel().kernel() == kernels::kernel<"global_norm">.name) {
    requireEachPartOnce(memory, command.kernel(), instance.microbatch);
    requireEveryPart(memory, command, held);
  }
  if (command.has_collective())
    requireSum(memory, command, held);
  if (command.has_collective() && command.collective().kind() == proto::CollectiveCommand::REDUCE_SCATTER)
    for (const proto::CollectivePart &part : command.collective().parts())
      requireSlices(memory, part, index);
}

} // namespace

std::vector<Meaning::Result> requireMeaning(RankMemory &memory, const std::vector<Effect> &effects, size_t index) {
  const Instance &instance = memory.instance(index);
  const proto::Command &command = *instance.command;
  std::vector<uint32_t> held;
  for (const Effect &effect : effects)
    held.push_back(effect.reads ? memory.valueIn(*effect.operand, instance.microbatch) : uint32_t(Values::unknown));
  try {
    requireCommand(memory, held, index);
    if (command.has_kernel())
      return memory.context.meaning.resultsOf(command, held);
  } catch (const Mismatch &mismatch) {
    memory.refuse("meaning", index, mismatch.sentence);
  }
  std::vector<Meaning::Result> results(effects.size());
  if (command.has_fill())
    results[0].value = memory.values().constant(0);
  if (command.has_feed())
    results[0].value = memory.values().input(memory.plan().inputs(int(command.feed().input())).name());
  return results;
}

} // namespace ds::check
