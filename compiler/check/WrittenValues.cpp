//===- WrittenValues.cpp - what lies in the operands that a command writes --===//
#include "compiler/check/WrittenValues.h"

#include "compiler/check/NormRules.h"
#include "kernels/KernelRows.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace ds::check {

namespace {

void add(std::vector<Contribution> &contributions, Contribution one) {
  contributions.insert(std::upper_bound(contributions.begin(), contributions.end(), one), one);
}

/// What this rank has where the first rank of its role has these: the same sums, of other elements.
std::vector<OperandSegment> asOtherRank(std::vector<OperandSegment> segments) {
  for (OperandSegment &segment : segments)
    segment.value = Values::unknown;
  return segments;
}

/// A message is of the micro-batch that its receiver takes it for.
void requireSameMicrobatch(const RankMemory &memory, const Step &sender, size_t index) {
  const Instance &theirs = memory.context.joint.timelines[sender.role].instances[sender.instance];
  const Instance &own = memory.instance(index);
  const proto::Role &role = memory.plan().roles(int(sender.role));
  for (int i = 0; i < own.command->receive().targets_size(); ++i) {
    const auto scopes = {role.buffers(int(theirs.command->send().sources(i).buffer())).scope(),
                         memory.bufferOf(own.command->receive().targets(i)).scope()};
    const bool bound = std::ranges::any_of(
        scopes, [](auto scope) { return scope == proto::Buffer::SLOT || scope == proto::Buffer::CALL; });
    if (bound && theirs.microbatch != own.microbatch)
      memory.refuse("value", index,
                    "receives for micro-batch " + std::to_string(own.microbatch) +
                        " what its sender sends of micro-batch " + std::to_string(theirs.microbatch),
                    placeOf(memory.plan(), memory.context.program.name(), theirs) + " sends it");
  }
}

/// By target.
std::vector<std::vector<OperandSegment>> received(const RankMemory &memory, size_t index) {
  const Step &sender = memory.context.joint.senders.at({memory.context.index, index});
  requireSameMicrobatch(memory, sender, index);
  std::vector<std::vector<OperandSegment>> targets = memory.context.messages.sent.at(sender);
  for (std::vector<OperandSegment> &target : targets)
    if (!memory.followsAll())
      target = asOtherRank(std::move(target));
  return targets;
}

/// The parameter, or its state, stays what it is.
std::vector<OperandSegment> updated(std::vector<OperandSegment> segments) {
  for (OperandSegment &segment : segments) {
    segment.contributions.clear();
    segment.updated = true;
  }
  return segments;
}

/// A sum of gradients again, or the sum of two, if a kernel makes that. Roles that share a parameter add up what each
/// has summed; their sums are of the same elements, micro-batch by micro-batch. That together they are the gradient is
/// the optimizer's to ask.
std::optional<std::vector<OperandSegment>> copyOrSumOfSums(RankMemory &memory, size_t index) {
  const Instance &instance = memory.instance(index);
  const proto::KernelCommand &kernel = instance.command->kernel();
  const bool copies = Meaning::isCopy(kernel);
  if (!copies && !Meaning::isAddition(kernel))
    return std::nullopt;
  const Step step{memory.context.index, index};
  auto &sums = memory.context.messages.sums;
  if (!memory.followsAll()) // what it is made of may not be followed
    return sums.contains(step) ? std::optional(asOtherRank(sums.at(step))) : std::nullopt;
  std::vector<OperandSegment> parts[2];
  for (int i = 0; i + 1 < kernel.operands_size(); ++i) {
    parts[i] = memory.segmentsOf(kernel.operands(i), instance.microbatch);
    if (std::ranges::any_of(parts[i], [](const OperandSegment &one) { return one.contributions.empty(); }))
      return std::nullopt;
  }
  for (const OperandSegment &a : parts[0])
    for (const OperandSegment &b : parts[1])
      if (a.begin < b.end && b.begin < a.end && a.valueByte - a.begin != b.valueByte - b.begin)
        memory.refuse("coverage", index, "adds sums of other elements of a gradient to each other");
  return sums[step] = copies ? parts[0] : sumOf(parts[0], parts[1]);
}

/// A kernel's result in a buffer of sums: this micro-batch's contribution, beside those that lie there if it adds to
/// them in place.
std::vector<OperandSegment> contributedTo(RankMemory &memory, const proto::Operand &target,
                                          const std::vector<Effect> &effects, const Meaning::Result &result,
                                          size_t index) {
  const uint64_t microbatch = memory.instance(index).microbatch;
  const Range range = memory.rangeOf(target, microbatch);
  std::vector<OperandSegment> segments = {{0, byteCount(target)}};
  for (const Effect &effect : effects)
    if (const Range other = memory.rangeOf(*effect.operand, microbatch); effect.reads && other == range)
      segments = memory.segmentsOf(target, microbatch);
  for (OperandSegment &segment : segments) {
    add(segment.contributions, {microbatch, false, result.added == Values::unknown ? result.value : result.added});
    segment.value = result.value;
    segment.valueByte = segment.begin;
  }
  return segments;
}

/// Whether a kernel leaves its operand's bytes as they are: neither broadcasts it nor converts it.
bool copiesBytes(const proto::Command &command) {
  return command.has_kernel() && Meaning::isCopy(command.kernel()) &&
         command.kernel().operands(0).dtype() == command.kernel().operands(1).dtype() &&
         byteCount(command.kernel().operands(0)) == byteCount(command.kernel().operands(1));
}

/// Whether a kernel converts its operand element by element.
bool converts(const proto::Command &command) {
  return command.has_kernel() && Meaning::isConversion(command.kernel()) &&
         elementsIn(shapeOf(command.kernel().operands(0))) == elementsIn(shapeOf(command.kernel().operands(1)));
}

/// What a conversion makes of parts of several values. Sums of gradients are not followed into another type.
std::vector<OperandSegment> convertedParts(RankMemory &memory, const proto::KernelCommand &kernel,
                                           uint64_t microbatch) {
  const uint64_t from = elementBytes(kernel.operands(0).dtype()), to = elementBytes(kernel.operands(1).dtype());
  std::vector<OperandSegment> segments = memory.segmentsOf(kernel.operands(0), microbatch);
  for (OperandSegment &segment : segments) {
    const bool isSum = !segment.contributions.empty();
    const uint32_t value = memory.values().converted(segment.value, kernel.operands(1).dtype());
    segment = {
        segment.begin / from * to,     segment.end / from * to, {}, false, isSum ? uint32_t(Values::other) : value,
        segment.valueByte / from * to, segment.ownOfRank};
  }
  return segments;
}

/// Sums of squares that name no op (NormRules.h).
bool isPartOfNorm(const proto::Command &command) {
  return command.has_kernel() && command.reference_size() == 0 && command.kernel().operands_size() >= 2 &&
         command.kernel().kernel() == kernels::kernel<"block_sum_squares">.name;
}

std::vector<OperandSegment> resultOf(RankMemory &memory, const proto::Operand &target,
                                     const std::vector<Effect> &effects, const Meaning::Result &result, size_t index) {
  const Instance &instance = memory.instance(index);
  const proto::Command &command = *instance.command;
  if (command.has_collective())
    return resultOfCollective(memory, target, index);
  if (command.has_copy())
    return memory.segmentsOf(command.copy().source(), 0, byteCount(target), instance.microbatch);
  if (isOptimizer(command))
    return updated(memory.segmentsOf(target, instance.microbatch));
  if (const auto sums = result.added == Values::unknown ? copyOrSumOfSums(memory, index) : std::nullopt)
    return *sums;
  if (result.value == Values::other && copiesBytes(command)) // parts of several values
    return memory.segmentsOf(command.kernel().operands(0), 0, byteCount(target), instance.microbatch);
  if (result.value == Values::other && converts(command))
    return convertedParts(memory, command.kernel(), instance.microbatch);
  if (command.has_kernel() && holdsSums(memory.bufferOf(target)))
    return contributedTo(memory, target, effects, result, index);
  if (isPartOfNorm(command))
    return sumsOfSquares(memory, index);
  return {{0, byteCount(target), {}, false, result.value}};
}

} // namespace

std::vector<std::vector<OperandSegment>> writtenBy(RankMemory &memory, const std::vector<Effect> &effects,
                                                   const std::vector<Meaning::Result> &results, size_t index) {
  if (memory.instance(index).command->has_receive())
    return received(memory, index);
  std::vector<std::vector<OperandSegment>> written(effects.size());
  for (size_t e = 0; e < effects.size(); ++e)
    if (effects[e].writes)
      written[e] = resultOf(memory, *effects[e].operand, effects, results[e], index);
  return written;
}

std::vector<OperandSegment> sumOf(const std::vector<OperandSegment> &a, const std::vector<OperandSegment> &b) {
  std::vector<OperandSegment> result;
  for (const OperandSegment &x : a)
    for (const OperandSegment &y : b) {
      const uint64_t begin = std::max(x.begin, y.begin), end = std::min(x.end, y.end);
      if (begin >= end)
        continue;
      OperandSegment segment{begin, end, y.contributions, false, x.value, x.valueByte + begin - x.begin};
      for (const Contribution &one : x.contributions)
        add(segment.contributions, one);
      result.push_back(std::move(segment));
    }
  return result;
}

} // namespace ds::check
