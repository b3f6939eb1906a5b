//===- WrittenValues.cpp - what lies in the operands that a command writes --===//
#include "compiler/check/WrittenValues.h"

#include "compiler/check/NormRules.h"
#include "kernels/KernelRows.h"
#include "runtime/plan/world/Mesh.h"

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
  Messages &messages = memory.context.messages;
  std::vector<std::vector<OperandSegment>> targets = messages.sent.at(sender);
  for (size_t i = 0; i < targets.size(); ++i) {
    const proto::Operand &target = memory.instance(index).command->receive().targets(int(i));
    const auto all = messages.sentOfAll.find({sender, i});
    if (all != messages.sentOfAll.end() && memory.followsAll())
      messages.scattered[{memory.context.index, target.buffer()}] = all->second;
    else if (all != messages.sentOfAll.end())
      targets[i] = all->second.of(memory.plan(), memory.rank, byteCount(target));
    else if (!memory.followsAll())
      targets[i] = asOtherRank(std::move(targets[i]));
  }
  return targets;
}

/// What an update leaves of a parameter or of its state.
std::vector<OperandSegment> updated(const RankMemory &memory, std::vector<OperandSegment> segments, size_t index) {
  using Version = Values::Version;
  const bool isByOne = memory.context.messages.byOne.contains({memory.context.index, index});
  for (OperandSegment &segment : segments)
    if (const auto held = memory.values().heldIn(segment.value))
      segment.value = memory.values().variable(held->variable, isByOne ? Version::ByOne : Version::Updated);
  return segments;
}

/// Whether a kernel converts its operand element by element.
bool converts(const proto::Command &command) {
  return command.has_kernel() && Meaning::isConversion(command.kernel()) &&
         elementsIn(shapeOf(command.kernel().operands(0))) == elementsIn(shapeOf(command.kernel().operands(1)));
}

/// A sum of gradients, rounded on its way from rank to rank or back in its own type, in which it stays that sum.
uint32_t roundedSum(const RankMemory &memory, uint32_t sum, proto::DType to) {
  Values &values = memory.values();
  if (!roundsSums(memory.plan()) || sum <= Values::other)
    return Values::other;
  const uint32_t own = values.unconverted(sum);
  const bool widens = elementBytes(to) > elementBytes(values.type(sum).dtype); // a gradient may be a cast itself
  return widens && own != sum && values.type(own).dtype == to ? own : values.converted(sum, to);
}

/// What a conversion makes of sums of gradients, or of parts of several values.
std::vector<OperandSegment> converted(RankMemory &memory, const proto::KernelCommand &kernel,
                                      std::vector<OperandSegment> segments) {
  const uint64_t from = elementBytes(kernel.operands(0).dtype()), to = elementBytes(kernel.operands(1).dtype());
  for (OperandSegment &segment : segments) {
    segment.begin = segment.begin / from * to;
    segment.end = segment.end / from * to;
    segment.valueByte = segment.valueByte / from * to;
    const proto::DType dtype = memory.values().type(segment.value).dtype;
    if (dtype != proto::DTYPE_UNSPECIFIED && dtype != kernel.operands(0).dtype()) // read as what it is not
      segment.value = Values::other;
    else if (segment.contributions.empty())
      segment.value = memory.values().converted(segment.value, kernel.operands(1).dtype());
    else
      segment.value = roundedSum(memory, segment.value, kernel.operands(1).dtype());
    if (segment.value == Values::other)
      segment.contributions.clear();
  }
  return segments;
}

/// What the operands of a kernel hold, if that is sums of gradients and zeros alone.
std::optional<std::vector<std::vector<OperandSegment>>> sumsIn(RankMemory &memory, size_t index) {
  const Instance &instance = memory.instance(index);
  const proto::KernelCommand &kernel = instance.command->kernel();
  std::vector<std::vector<OperandSegment>> parts;
  bool isSum = false;
  for (int i = 0; i + 1 < kernel.operands_size(); ++i)
    for (const OperandSegment &one : parts.emplace_back(memory.segmentsOf(kernel.operands(i), instance.microbatch))) {
      isSum |= !one.contributions.empty();
      if (one.contributions.empty() && one.value != memory.values().zero() && one.value != memory.values().padding())
        return std::nullopt;
    }
  return isSum ? std::optional(std::move(parts)) : std::nullopt;
}

/// Whether both are the same sums of the same elements, however they are cut into segments.
bool sameSums(const std::vector<OperandSegment> &as, const std::vector<OperandSegment> &bs) {
  for (const OperandSegment &a : as)
    for (const OperandSegment &b : bs)
      if (a.begin < b.end && b.begin < a.end &&
          (a.value != b.value || a.contributions != b.contributions || a.valueByte - a.begin != b.valueByte - b.begin))
        return false;
  return true;
}

/// What a kernel makes of sums that were scattered: in all slices.
std::optional<Scattered> madeOfScattered(RankMemory &memory, const proto::KernelCommand &kernel, uint64_t microbatch) {
  std::optional<uint32_t> communicator;
  for (int i = 0; i + 1 < kernel.operands_size() && !communicator; ++i)
    if (const auto found = memory.context.messages.scattered.find({memory.context.index, kernel.operands(i).buffer()});
        found != memory.context.messages.scattered.end())
      communicator = found->second.communicator;
  std::vector<Scattered> parts;
  for (int i = 0; i + 1 < kernel.operands_size() && communicator; ++i)
    if (auto part =
            scatteredIn(memory, kernel.operands(i), *communicator, memory.segmentsOf(kernel.operands(i), microbatch)))
      parts.push_back(std::move(*part));
  if (parts.empty() || parts.size() + 1 != size_t(kernel.operands_size()))
    return std::nullopt;
  auto &whole = parts.front().whole;
  return Scattered{parts.size() == 2         ? sumOf(whole, parts[1].whole)
                   : Meaning::isCopy(kernel) ? whole
                                             : converted(memory, kernel, whole),
                   *communicator};
}

/// This rank's slice of what a kernel makes of sums that were scattered. The first rank of its role has met the whole;
/// of others not all bytes may be followed.
std::optional<std::vector<OperandSegment>> madeSlice(RankMemory &memory, const Step &step) {
  const Instance &instance = memory.instance(step.instance);
  const proto::KernelCommand &kernel = instance.command->kernel();
  const proto::Operand &result = kernel.operands(kernel.operands_size() - 1);
  Messages &messages = memory.context.messages;
  if (memory.followsAll())
    if (auto made = madeOfScattered(memory, kernel, instance.microbatch))
      messages.made[step] = messages.scattered[{step.role, result.buffer()}] = std::move(*made);
  const auto found = messages.made.find(step);
  return found == messages.made.end() ? std::nullopt
                                      : std::optional(found->second.of(memory.plan(), memory.rank, byteCount(result)));
}

/// A sum of gradients again, rounded or not, or the sum of two, if a kernel makes that. Roles that share a parameter
/// add up what each has summed; their sums are of the same elements, micro-batch by micro-batch. That together they are
/// the gradient is the optimizer's to ask.
std::optional<std::vector<OperandSegment>> copyOrSumOfSums(RankMemory &memory, size_t index) {
  const proto::Command &command = *memory.instance(index).command;
  const proto::KernelCommand &kernel = command.kernel();
  const bool rounds = converts(command) && roundsSums(memory.plan());
  if (!rounds && !Meaning::isCopy(kernel) && !Meaning::isAddition(kernel))
    return std::nullopt;
  const Step step{memory.context.index, index};
  auto &sums = memory.context.messages.sums;
  const std::optional<std::vector<OperandSegment>> slice = madeSlice(memory, step);
  if (slice && roundsSums(memory.plan()))
    return slice;
  const bool onHost = memory.role().queues(int(command.queue())).kind() == proto::Queue::HOST;
  if (!memory.followsAll() && onHost && sums.contains(step)) { // of slices that copies bring, not all of them followed
    if (const auto parts = sumsIn(memory, index); parts && parts->size() == 2)
      return sumOf(parts->at(0), parts->at(1));
    return std::vector<OperandSegment>{{0, sums.at(step).back().end}};
  }
  if (!memory.followsAll() && slice) // what it is made of may not be followed
    return slice;
  if (!memory.followsAll())
    return sums.contains(step) ? std::optional(asOtherRank(sums.at(step))) : std::nullopt;
  const auto parts = sumsIn(memory, index);
  if (!parts)
    return std::nullopt;
  if (parts->size() == 1)
    return sums[step] = rounds ? converted(memory, kernel, parts->front()) : parts->front();
  for (const OperandSegment &a : parts->at(0))
    for (const OperandSegment &b : parts->at(1))
      if (a.begin < b.end && b.begin < a.end && a.valueByte - a.begin != b.valueByte - b.begin &&
          !a.contributions.empty() && !b.contributions.empty())
        memory.refuse("coverage", index, "adds sums of other elements of a gradient to each other");
  return sums[step] = sumOf(parts->at(0), parts->at(1));
}

/// What a kernel adds to a sum: of a tied parameter's gradient, which part. What another rank reads may not be
/// followed; the first rank of its role has met the same command.
uint32_t addedTo(const RankMemory &memory, const proto::Operand &target, const Meaning::Result &result, size_t index) {
  auto &added = memory.context.messages.added;
  const std::pair place(Step{memory.context.index, index}, &target);
  const uint32_t own = result.added == Values::unknown ? result.value : result.added;
  if (memory.followsAll())
    return added[place] = own;
  const auto first = added.find(place);
  return first == added.end() ? own : first->second;
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
    add(segment.contributions, {microbatch, {}, addedTo(memory, target, result, index)});
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
    return memory.isFollowed(memory.rangeOf(command.copy().source(), instance.microbatch))
               ? memory.segmentsOf(command.copy().source(), 0, byteCount(target), instance.microbatch)
               : std::vector<OperandSegment>{{0, byteCount(target)}};
  if (isOptimizer(command))
    return updated(memory, memory.segmentsOf(target, instance.microbatch), index);
  if (const auto sums = result.added == Values::unknown ? copyOrSumOfSums(memory, index) : std::nullopt)
    return *sums;
  if (result.value == Values::other && copiesBytes(command)) // parts of several values
    return memory.segmentsOf(command.kernel().operands(0), 0, byteCount(target), instance.microbatch);
  if (result.value == Values::other && converts(command))
    return converted(memory, command.kernel(), memory.segmentsOf(command.kernel().operands(0), instance.microbatch));
  if (isPartOfNorm(command))
    return sumsOfSquares(memory, index);
  const proto::Buffer &buffer = memory.bufferOf(target);
  if (command.has_kernel() && (holdsSums(buffer) || memory.context.meaning.delays().lieIn(memory.plan(), buffer)))
    return contributedTo(memory, target, effects, result, index);
  return {{0, byteCount(target), {}, result.value}};
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

std::optional<Scattered> scatteredIn(RankMemory &memory, const proto::Operand &operand, uint32_t communicator,
                                     const std::vector<OperandSegment> &own) {
  const uint64_t bytes = byteCount(operand), all = bytes * plan::Group(memory.plan(), communicator).size();
  if (operand.rank_stride() != 0 && operand.rank_stride() != bytes)
    return std::nullopt;
  const auto found = memory.context.messages.scattered.find({memory.context.index, operand.buffer()});
  if (found != memory.context.messages.scattered.end() && !found->second.whole.empty() &&
      found->second.whole.back().end == all && sameSums(found->second.of(memory.plan(), memory.rank, bytes), own))
    return found->second;
  const auto isZero = [&](const OperandSegment &one) {
    return one.contributions.empty() && one.value == memory.values().zero();
  };
  if (std::ranges::all_of(own, isZero))
    return Scattered{{{0, all, {}, memory.values().zero()}}, communicator};
  return std::nullopt;
}

std::optional<Scattered> scatteredIn(RankMemory &memory, const proto::Operand &operand,
                                     const std::vector<OperandSegment> &own) {
  const auto found = memory.context.messages.scattered.find({memory.context.index, operand.buffer()});
  return found == memory.context.messages.scattered.end()
             ? std::nullopt
             : scatteredIn(memory, operand, found->second.communicator, own);
}

std::vector<OperandSegment> sumOf(const std::vector<OperandSegment> &a, const std::vector<OperandSegment> &b) {
  std::vector<OperandSegment> result;
  for (const OperandSegment &x : a)
    for (const OperandSegment &y : b) {
      const uint64_t begin = std::max(x.begin, y.begin), end = std::min(x.end, y.end);
      if (begin >= end)
        continue;
      const bool isOfY = x.contributions.empty() && !y.contributions.empty(); // x may be zeros
      const OperandSegment &one = isOfY ? y : x;
      OperandSegment segment{begin, end, y.contributions, one.value, one.valueByte + begin - one.begin};
      for (const Contribution &added : x.contributions)
        add(segment.contributions, added);
      result.push_back(std::move(segment));
    }
  return result;
}

} // namespace ds::check
