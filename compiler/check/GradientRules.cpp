//===- GradientRules.cpp - gradients are complete, updates are made once --===//
//
// A byte of a gradient carries the list of its contributions: of which micro-batch, summed over
// which axes, and which value of the reference program was added.
//
//===----------------------------------------------------------------------===//
#include "compiler/check/GradientRules.h"

#include "compiler/check/schedule/Effects.h"
#include "compiler/check/schedule/Layout.h"
#include "kernels/KernelTable.h"
#include "runtime/plan/world/Mesh.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ds::check {

namespace {

/// The elements of a gradient that a segment should hold.
struct Expected {
  uint32_t value; ///< what each micro-batch adds; unknown where the reference program does not say
  uint64_t byte;  ///< where the segment begins in it
};

const std::string &variableName(const RankMemory &memory, uint32_t variable) {
  return memory.plan().variables(int(variable)).name();
}

/// Why what a micro-batch has added is of other values, or of other elements of theirs; empty if it is not. A tied
/// parameter's contributions come from several roles: together they must be all that is expected.
std::string checkMicrobatch(const RankMemory &memory, const Known &segment, uint64_t microbatch,
                            const Expected &expected) {
  Values &values = memory.values();
  std::vector<uint32_t> added;
  for (const Contribution &one : segment.contributions)
    if (one.microbatch == microbatch)
      added.push_back(one.value);
  const auto text = [&](uint32_t number, uint64_t at) {
    return values.name(number) + " from its byte " + std::to_string(at) + " on";
  };
  const bool known = expected.value != Values::unknown && std::ranges::count(added, uint32_t(Values::unknown)) == 0;
  if (added.size() > 1 && (!known || !values.addUp(added, expected.value, /*whole=*/true)))
    return "holds micro-batch " + std::to_string(microbatch) + " " + std::to_string(added.size()) + " times";
  const bool sameElements = segment.value == Values::unknown || segment.valueByte == expected.byte;
  if (!known || (values.addUp(added, expected.value, /*whole=*/true) && sameElements))
    return {};
  return "is the sum of " + text(added[0], segment.valueByte) + ", not of " + text(expected.value, expected.byte);
}

/// Why a sum is not the gradient of a whole step, or empty.
std::string checkGradient(const RankMemory &memory, const Known &segment, const Expected &expected) {
  const proto::Training &training = memory.plan().training();
  const plan::AxisSet batch = plan::batchAxes(memory.plan());
  auto next = segment.contributions.begin(); // in the order of micro-batches
  for (uint64_t k = 0; k < training.accumulation_steps(); ++k) {
    const std::string number = "micro-batch " + std::to_string(k);
    if (next == segment.contributions.end() || next->microbatch != k)
      return "lacks " + number;
    if (std::string why = checkMicrobatch(memory, segment, k, expected); !why.empty())
      return why;
    for (; next != segment.contributions.end() && next->microbatch == k; ++next)
      if (!next->summed.includes(batch))
        return "holds " + number + " of this rank alone; it was not summed over the ranks";
      else if (next->summed != batch)
        return "holds " + number +
               " summed over ranks that have the same samples, as many times as there are such ranks";
  }
  if (next != segment.contributions.end())
    return "holds micro-batch " + std::to_string(next->microbatch) + ", which the step has not";
  return {};
}

/// The parameters that an update finds in its operand, and the parts of them; counted from the first byte of what the
/// operand holds.
std::vector<Member> parametersIn(const RankMemory &memory, const proto::Operand &operand, const Contents &held,
                                 size_t index) {
  const Values &values = memory.values();
  std::vector<Member> members;
  for (const OperandSegment &segment : held.segments) {
    if (values.isPadding(segment.value))
      continue;
    const auto found = values.heldIn(segment.value);
    if (found && found->version == Values::Version::Updated)
      memory.refuse("coverage", index,
                    "updates parameter " + variableName(memory, found->variable) + " a second time in one step");
    if (!found || found->version != Values::Version::Old)
      throw Mismatch{"its operand in " + memory.nameOf(operand.buffer()) + " holds " + values.name(segment.value) +
                     ", neither a parameter nor state"};
    Member next{found->variable, segment.begin, segment.end, segment.valueByte};
    if (!members.empty() && members.back().variable == next.variable && members.back().end == next.begin &&
        members.back().firstByte + (next.begin - members.back().begin) == next.firstByte)
      members.back().end = next.end;
    else
      members.push_back(next);
  }
  return members;
}

/// An update takes the old value of its parameter's state, and of its pending gradient, where the parameter's elements
/// are.
void requireOld(const RankMemory &memory, size_t operand, const Contents &held, uint32_t variable,
                const Member &parameter, size_t index) {
  const proto::Operand &own = memory.instance(index).command->kernel().operands(int(operand));
  const Values &values = memory.values();
  const uint32_t expected = memory.values().variable(variable);
  const auto text = [&](uint32_t value, uint64_t byte) {
    return values.name(value) + " from its byte " + std::to_string(byte) + " on";
  };
  for (const OperandSegment &segment : cut(held.segments, parameter.begin, parameter.end - parameter.begin)) {
    const uint64_t byte = parameter.firstByte + segment.begin;
    const bool isOld = segment.value == expected && segment.valueByte == byte && segment.contributions.empty();
    if (!isOld)
      memory.refuse(operand == kernels::KernelRow::gradient ? "coverage" : "meaning", index,
                    "its operand in " + memory.nameOf(own.buffer()) + " holds " +
                        text(segment.value, segment.valueByte) + ", but the update of " +
                        variableName(memory, parameter.variable) + " takes " + text(expected, byte));
  }
}

/// The same elements of a parameter where they have `bytes` bytes each, not `from`: sums of gradients may be smaller,
/// moments larger.
Member withBytes(const Member &member, uint64_t from, uint64_t bytes) {
  return {member.variable, member.begin / from * bytes, member.end / from * bytes, member.firstByte / from * bytes};
}

/// State is changed with its parameter alone: where that has padding, an operand that is written has nothing else.
/// `from`: bytes of an element of the parameters.
void requireNoMore(const RankMemory &memory, const proto::Operand &state, const Contents &contents,
                   const std::vector<Member> &parameters, uint64_t from) {
  if (state.access() != proto::Operand::READ_WRITE)
    return;
  uint64_t updated = 0, held = 0;
  for (const Member &parameter : parameters)
    updated += (parameter.end - parameter.begin) / from * elementBytes(state.dtype());
  for (const OperandSegment &segment : contents.segments)
    if (memory.values().heldIn(segment.value) && !memory.values().isPadding(segment.value))
      held += segment.end - segment.begin;
  if (held > updated)
    throw Mismatch{"its operand in " + memory.nameOf(state.buffer()) + " holds " + std::to_string(held) +
                   " bytes of state, but it updates " + std::to_string(updated) + " of parameters"};
}

/// Where what becomes of one element depends on all others, an update is of all elements of one variable.
void requireWhole(const RankMemory &memory, const proto::Command &command, const std::vector<Member> &members) {
  const std::string &kernel = command.kernel().kernel();
  const kernels::KernelRow *row = kernels::findKernel(kernel);
  if (!row || !row->updatesWhole() || members.empty())
    return;
  const proto::Operand &operand = command.kernel().operands(int(kernels::KernelRow::parameter));
  const proto::Variable &variable = memory.plan().variables(int(members[0].variable));
  const uint64_t bytes = elementsIn(shapeOf(variable)) * elementBytes(variable.dtype()),
                 updated = members[0].end - members[0].begin;
  if (members.size() > 1 || updated != bytes || byteCount(operand) != bytes)
    throw Mismatch{"it updates " + std::to_string(updated) + " of the " + std::to_string(bytes) + " bytes of " +
                   variable.name() + " in a call on " + std::to_string(byteCount(operand)) + "; " + kernel +
                   " takes norms of a parameter, which is whole and alone in a call"};
}

/// Where several stages add to a tied parameter, a rank that has them all adds its parts one after another, each over
/// all micro-batches; or ranks' parts are added up at the end. One stage adds them up in each micro-batch.
void requireOneSum(const RankMemory &memory, const OperandSegment &segment, uint32_t variable, size_t index) {
  if (memory.plan().numerics() != "bit-equal" || memory.plan().training().accumulation_steps() < 2)
    return;
  for (size_t i = 1; i < segment.contributions.size(); ++i) // in the order of micro-batches
    if (segment.contributions[i].microbatch == segment.contributions[i - 1].microbatch)
      memory.refuse("numerics", index,
                    "takes the gradient of " + variableName(memory, variable) + ", whose parts of micro-batch " +
                        std::to_string(segment.contributions[i].microbatch) +
                        " were added apart, in another order than one rank's, and the plan says bit-equal");
}

} // namespace

void requireGradient(RankMemory &memory, const std::vector<Contents> &read, std::span<const uint32_t> values,
                     size_t index) {
  const Instance &instance = memory.instance(index);
  const RoleContext &context = memory.context;
  const auto &operands = instance.command->kernel().operands();
  using Row = kernels::KernelRow;
  const proto::Operand &gradient = operands[Row::gradient];
  const uint64_t own = elementBytes(operands[Row::parameter].dtype());
  const bool mayTakeOne = context.program.has_tail() && !context.isInTail(instance.call);
  const std::vector<Member> members = parametersIn(memory, operands[Row::parameter], read[Row::parameter], index);
  requireWhole(memory, *instance.command, members);
  const auto requireShared = [&](size_t operand) {
    const auto has = [&](size_t one) {
      return (read[one].along.empty() ? "all of " : "each its own slice of ") +
             memory.nameOf(operands[int(one)].buffer());
    };
    if (read[operand].along != read[Row::parameter].along)
      throw Mismatch{"ranks take " + has(operand) + ", but for its parameter " + has(Row::parameter)};
  };
  if (!members.empty())
    requireShared(Row::gradient);
  std::map<uint32_t, Meaning::Update> updates; // by variable
  for (const Member &member : members) {
    const auto [known, isNew] = updates.try_emplace(member.variable);
    if (isNew)
      known->second = context.meaning.requireUpdate(*instance.command, member.variable, values, mayTakeOne);
    const Meaning::Update &update = known->second;
    memory.byOne |= update.oneFor && update.oneFor != context.one;
    for (size_t i = 0; i < update.state.size() && Row::state + i < size_t(operands.size()); ++i) {
      requireShared(Row::state + i);
      requireOld(memory, Row::state + i, read[Row::state + i], update.state[i],
                 withBytes(member, own, elementBytes(operands[int(Row::state + i)].dtype())), index);
    }
    const Member summed = withBytes(member, own, elementBytes(gradient.dtype()));
    if (update.pending) {
      requireOld(memory, Row::gradient, read[Row::gradient], *update.pending, summed, index);
      continue;
    }
    for (const OperandSegment &segment : cut(read[Row::gradient].segments, summed.begin, summed.end - summed.begin)) {
      if (const std::string why = checkGradient(memory, segment, {update.added, summed.firstByte + segment.begin});
          !why.empty())
        memory.refuse("coverage", index,
                      "the gradient of " + variableName(memory, member.variable) + " in " +
                          memory.nameOf(gradient.buffer()) + " " + why);
      requireOneSum(memory, segment, member.variable, index);
    }
  }
  requireSumType(memory, gradient, read[Row::gradient], index);
  for (size_t i = Row::state; i < size_t(operands.size()); ++i)
    requireNoMore(memory, operands[int(i)], read[i], members, own);
}

void requireSumType(const RankMemory &memory, const proto::Operand &operand, const Contents &sums, size_t index) {
  for (const OperandSegment &segment : sums.segments)
    if (const proto::DType dtype = memory.values().type(segment.value).dtype;
        dtype != proto::DTYPE_UNSPECIFIED && dtype != operand.dtype())
      memory.refuse("meaning", index,
                    "it takes " + memory.values().name(segment.value) + " as elements of another type");
}

void requireSummed(const RankMemory &memory, const Contents &gradient, size_t index) {
  requireSumType(memory, memory.instance(index).command->kernel().operands(0), gradient, index);
  for (const OperandSegment &segment : gradient.segments) {
    for (const Contribution &one : segment.contributions)
      if (!one.summed.includes(plan::batchAxes(memory.plan())))
        memory.refuse("coverage", index,
                      "squares a gradient that holds micro-batch " + std::to_string(one.microbatch) +
                          " of this rank alone; it was not summed over the ranks, or this rank added to the sum");
    const auto held = memory.values().heldIn(segment.value);
    if (segment.contributions.empty() || !held || held->variable == Values::noVariable)
      continue;
    const uint32_t added = memory.context.meaning.contributionTo(held->variable);
    if (const std::string why = checkGradient(memory, segment, {added, segment.valueByte}); !why.empty())
      memory.refuse("coverage", index, "squares " + variableName(memory, held->variable) + ", which " + why);
  }
}

std::string whyNotPending(const RankMemory &memory, const Known &held, uint32_t variable, uint64_t byte) {
  const Meaning &meaning = memory.context.meaning;
  const uint32_t added = meaning.gradientOf(meaning.delays().gradientIn(variable).value());
  return checkGradient(memory, held, {added, byte});
}

Contents summands(RankMemory &memory, const proto::Operand &source, size_t index) {
  const Instance &instance = memory.instance(index);
  Contents contents = memory.contentsOf(source, instance.microbatch);
  if (holdsSums(memory.bufferOf(source)))
    return contents;
  for (OperandSegment &segment : contents.segments) {
    if (!segment.contributions.empty())
      continue;
    const uint32_t exact = roundsSums(memory.plan()) ? memory.values().unconverted(segment.value) : segment.value;
    for (const uint32_t reference : instance.command->reference()) {
      const proto::ReferenceOp &op = memory.plan().reference().ops(int(reference));
      const bool adds = op.op() == "train.accumulate" || op.op() == "train.store";
      if (!adds || memory.plan().variables(int(op.variables(0))).kind() != proto::Variable::GRADIENT)
        continue;
      const uint32_t added = memory.values().placedAs(op.variables(0), memory.values().of(op.operands(0)));
      if (segment.value > Values::other && segment.value == added)
        segment.contributions = {{instance.microbatch, {}, added}};
      else if (memory.context.meaning.isPartOf(exact, added))
        segment.contributions = {{instance.microbatch, {}, exact}};
    }
  }
  return contents;
}

} // namespace ds::check
