//===- WrittenValues.cpp - what lies in the operands that a command writes --===//
#include "compiler/check/WrittenValues.h"

#include "compiler/check/GradientRules.h"
#include "compiler/check/NormRules.h"
#include "kernels/ElementwiseProgram.h"
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

/// A message is of the micro-batch that its receiver takes it for.
void requireSameMicrobatch(const RankMemory &memory, const RankMemory &sender, const Instance &theirs,
                           const std::vector<Contents> &sent, size_t index) {
  const Instance &own = memory.instance(index);
  if (theirs.microbatch == own.microbatch)
    return;
  for (int i = 0; i < own.command->receive().targets_size(); ++i)
    for (const OperandSegment &segment : sent[size_t(i)].segments)
      if (sender.isBound(sender.bufferOf(theirs.command->send().sources(i)), segment) ||
          memory.isBound(memory.bufferOf(own.command->receive().targets(i)), segment))
        memory.refuse("value", index,
                      "receives for micro-batch " + std::to_string(own.microbatch) +
                          " what its sender sends of micro-batch " + std::to_string(theirs.microbatch),
                      sender.placeOf(theirs) + " sends it");
}

/// What several ranks have of their own is nothing that one of them can send to another. Ranks of another role have
/// the same shares where they have the same coordinates.
Contents sentAlong(const RankMemory &memory, const RankMemory &sender, Contents contents, uint32_t axis) {
  plan::AxisSet axes;
  axes.add(axis);
  for (OperandSegment &segment : contents.segments) {
    const plan::AxisSet along = segment.share ? segment.share->along : contents.along;
    const bool isAlike = along.empty() || memory.coordinates(along) == sender.coordinates(along);
    if (along.contains(axis) || segment.varies.contains(axis) || !isAlike || memory.isShared(segment, axes))
      static_cast<Known &>(segment) = {.value = memory.values().ofRank(segment.value, "another rank"),
                                       .valueByte = segment.valueByte,
                                       .varies = segment.varies};
  }
  return contents;
}

/// By target.
std::vector<Contents> received(const RankMemory &memory, size_t index) {
  const Step &from = memory.context.joint.senders.at({memory.context.index, index});
  const RankMemory &sender = *memory.context.memories[from.role];
  const std::vector<Contents> &all = memory.context.messages.sent.at(from);
  requireSameMicrobatch(memory, sender, sender.instance(from.instance), all, index);
  const proto::ReceiveCommand &receive = memory.instance(index).command->receive();
  std::vector<Contents> targets;
  for (const Contents &sent : all)
    targets.push_back(sentAlong(memory, sender, sent, memory.plan().channels(int(receive.channel())).axis()));
  return targets;
}

/// What an update leaves of a parameter or of its state.
Contents updated(const RankMemory &memory, Contents contents) {
  using Version = Values::Version;
  for (OperandSegment &segment : contents.segments)
    if (const auto held = memory.values().heldIn(segment.value))
      segment.value = memory.values().variable(held->variable, memory.byOne ? Version::ByOne : Version::Updated);
  return contents;
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
Contents converted(const RankMemory &memory, const proto::KernelCommand &kernel, Contents contents) {
  const uint64_t from = elementBytes(kernel.operands(0).dtype()), to = elementBytes(kernel.operands(1).dtype());
  for (OperandSegment &segment : contents.segments) {
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
  return contents;
}

/// Whether operands hold sums of gradients and zeros alone.
bool areSums(const RankMemory &memory, const std::vector<Contents> &read, int operands) {
  bool isSum = false;
  for (int i = 0; i < operands; ++i)
    for (const OperandSegment &one : read[size_t(i)].segments) {
      isSum |= !one.contributions.empty();
      if (one.contributions.empty() && one.value != memory.values().zero() && one.value != memory.values().padding())
        return false;
    }
  return isSum;
}

/// Calls visit(begin, end, x, y) for the bytes in which one segment of each lies.
void overBoth(const Contents &a, const Contents &b, auto visit) {
  auto y = b.segments.begin();
  for (const OperandSegment &x : a.segments)
    while (y != b.segments.end() && y->begin < x.end) {
      if (const uint64_t begin = std::max(x.begin, y->begin), end = std::min(x.end, y->end); begin < end)
        visit(begin, end, x, *y);
      if (y->end > x.end)
        break;
      ++y;
    }
}

/// Whether what is added to a sum of gradients is one of the same elements, or nothing but zeros.
bool isAddedTo(const RankMemory &memory, const OperandSegment &sum, const OperandSegment &other) {
  if (sum.contributions.empty())
    return true;
  if (other.contributions.empty())
    return other.value == memory.values().zero() || other.value == memory.values().padding() ||
           other.value == Values::unknown;
  return sum.valueByte - sum.begin == other.valueByte - other.begin;
}

bool areAligned(const RankMemory &memory, const Contents &a, const Contents &b) {
  bool are = true;
  overBoth(a, b, [&](uint64_t, uint64_t, const OperandSegment &x, const OperandSegment &y) {
    are &= isAddedTo(memory, x, y) && isAddedTo(memory, y, x);
  });
  return are;
}

/// What two sums are together: of a variable's the variable again, whose contributions tell what it is the sum of.
uint32_t valueOfSum(Values &values, uint32_t a, uint32_t b) {
  uint32_t whole = a;
  while (const Values::Placed *placed = values.placedIn(whole))
    whole = placed->whole;
  if (a == b && values.heldIn(values.unconverted(whole)))
    return a;
  const uint32_t sums[] = {a, b};
  return values.apply(int64_t(kernels::ElementwiseOp::Add), values.type(a).dtype, sums,
                      values.type(a).elements.value_or(0));
}

/// What two values are together that are no sums of gradients: one of them, where the other is zero.
uint32_t valueOfTerms(Values &values, uint32_t a, uint32_t b) {
  if (a == Values::unknown || b == Values::unknown)
    return Values::unknown;
  const auto isZero = [&](uint32_t value) { return value == values.zero() || values.isPadding(value); };
  return isZero(b) ? a : isZero(a) ? b : uint32_t(Values::other);
}

/// A sum of gradients again, rounded or not, or the sum of two, if a kernel makes that. Roles that share a parameter
/// add up what each has summed; their sums are of the same elements, micro-batch by micro-batch. That together they are
/// the gradient is the optimizer's to ask.
std::optional<Contents> copyOrSumOfSums(RankMemory &memory, const std::vector<Contents> &read, size_t index) {
  const proto::Command &command = *memory.instance(index).command;
  const proto::KernelCommand &kernel = command.kernel();
  const bool rounds = converts(command) && roundsSums(memory.plan());
  if (!rounds && !Meaning::isCopy(kernel) && !Meaning::isAddition(kernel))
    return std::nullopt;
  for (const proto::Operand &operand : kernel.operands()) // nothing broadcasts
    if (!rounds && byteCount(operand) != byteCount(kernel.operands(kernel.operands_size() - 1)))
      return std::nullopt;
  const int operands = kernel.operands_size() - 1;
  if (operands > 2 || !areSums(memory, read, operands))
    return std::nullopt;
  if (operands == 1)
    return rounds ? converted(memory, kernel, read[0]) : read[0];
  for (int i = 0; i < operands; ++i)
    requireSumType(memory, kernel.operands(i), read[size_t(i)], index);
  if (!areAligned(memory, read[0], read[1]))
    memory.refuse("coverage", index, "adds sums of other elements of a gradient to each other");
  return sumOf(memory, read[0], read[1]);
}

/// A kernel's result in a buffer of sums: this micro-batch's contribution, beside those that lie there if it adds to
/// them in place.
Contents contributedTo(const RankMemory &memory, const proto::Operand &target, const std::vector<Effect> &effects,
                       const std::vector<Contents> &read, const Meaning::Result &result, size_t index) {
  const uint64_t microbatch = memory.instance(index).microbatch;
  const Range range = memory.rangeOf(target, microbatch);
  Contents contents{{{0, byteCount(target)}}};
  const bool adds = result.added != Values::unknown, mayAdd = adds || result.value <= Values::other;
  for (size_t e = 0; e < effects.size() && mayAdd; ++e)
    if (effects[e].reads && memory.rangeOf(*effects[e].operand, microbatch) == range)
      contents = read[e];
  for (OperandSegment &segment : contents.segments) {
    OperandSegment added(segment.begin, segment.end,
                         {{{microbatch, {}, adds ? result.added : result.value}}, result.value, segment.begin});
    const bool isSum = isAddedTo(memory, segment, added) && (!adds || isAddedTo(memory, added, segment));
    for (const Contribution &one : segment.contributions)
      add(added.contributions, one);
    segment = isSum ? std::move(added) : OperandSegment(segment.begin, segment.end, {.value = Values::other});
  }
  return contents;
}

/// Whether a kernel leaves its operand's bytes as they are: neither broadcasts it nor converts it.
bool copiesBytes(const proto::Command &command) {
  return command.has_kernel() && Meaning::isCopy(command.kernel()) &&
         command.kernel().operands(0).dtype() == command.kernel().operands(1).dtype() &&
         byteCount(command.kernel().operands(0)) == byteCount(command.kernel().operands(1));
}

/// Whether a kernel has made a value of its micro-batch: such may lie among sums of gradients.
bool isOfMicrobatch(const RankMemory &memory, const proto::Command &command, const Meaning::Result &result) {
  return command.reference_size() > 0 && result.value > Values::other &&
         std::ranges::all_of(command.reference(), [&](uint32_t number) {
           const proto::ReferenceOp &op = memory.plan().reference().ops(int(number));
           return op.function() != "update" && op.results_size() > 0;
         });
}

Contents resultOf(RankMemory &memory, const std::vector<Effect> &effects, size_t effect,
                  const std::vector<Contents> &read, const Meaning::Result &result, size_t index) {
  const proto::Operand &target = *effects[effect].operand;
  const proto::Command &command = *memory.instance(index).command;
  if (command.has_collective())
    return resultOfCollective(memory, target, index);
  if (command.has_copy())
    return read[0];
  if (isOptimizer(command))
    return updated(memory, read[effect]);
  const bool maySum =
      command.has_kernel() && result.added == Values::unknown && !isOfMicrobatch(memory, command, result);
  if (const auto sums = maySum ? copyOrSumOfSums(memory, read, index) : std::nullopt)
    return *sums;
  if (result.value == Values::other && copiesBytes(command)) // parts of several values
    return read[0];
  if (result.value == Values::other && converts(command))
    return converted(memory, command.kernel(), read[0]);
  if (Meaning::isPartOfNorm(command))
    return sumsOfSquares(memory, read[0], index);
  const proto::Buffer &buffer = memory.bufferOf(target);
  if (command.has_kernel() && !takesMicrobatch(memory.plan(), command) && // a sum of losses is a value wherever it lies
      (holdsSums(buffer) || memory.context.meaning.delays().lieIn(memory.plan(), buffer)))
    return contributedTo(memory, target, effects, read, result, index);
  return {{{0, byteCount(target), {.value = result.value}}}};
}

} // namespace

std::vector<Contents> writtenBy(RankMemory &memory, const std::vector<Effect> &effects,
                                const std::vector<Contents> &read, const std::vector<Meaning::Result> &results,
                                size_t index) {
  if (memory.instance(index).command->has_receive())
    return received(memory, index);
  std::vector<Contents> written(effects.size());
  for (size_t e = 0; e < effects.size(); ++e)
    if (effects[e].writes)
      written[e] = resultOf(memory, effects, e, read, results[e], index);
  return written;
}

std::optional<Contents> sumOf(const RankMemory &memory, const Contents &a, const Contents &b) {
  if (a.along != b.along) {
    const Contents &plain = a.along.empty() ? a : b, &shared = a.along.empty() ? b : a;
    if (!plain.along.empty())
      return std::nullopt;
    return sumOf(memory, memory.joined(plain.segments, plain.segments.back().end, shared.along), shared);
  }
  Contents sum{{}, a.along};
  overBoth(a, b, [&](uint64_t begin, uint64_t end, const OperandSegment &x, const OperandSegment &y) {
    const bool isOfY = x.contributions.empty() && !y.contributions.empty(); // x may be zeros
    const OperandSegment &one = isOfY ? y : x, &rest = isOfY ? x : y;
    const plan::AxisSet varies = x.varies | y.varies;
    if (!isAddedTo(memory, one, rest))
      return append(sum.segments, {begin, end, {.value = Values::other, .varies = varies}});
    const bool areSums = !x.contributions.empty() && !y.contributions.empty(), isSum = !one.contributions.empty();
    const uint32_t value = areSums ? valueOfSum(memory.values(), x.value, y.value)
                           : isSum ? one.value
                                   : valueOfTerms(memory.values(), one.value, rest.value);
    OperandSegment both(begin, end, {y.contributions, value, one.valueByte + begin - one.begin, varies});
    for (const Contribution &added : x.contributions)
      add(both.contributions, added);
    append(sum.segments, std::move(both));
  });
  return sum;
}

} // namespace ds::check
