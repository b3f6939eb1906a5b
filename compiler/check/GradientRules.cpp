//===- GradientRules.cpp - gradients are complete, updates are made once --===//
//
// A byte of a gradient carries the list of its contributions: of which micro-batch, summed over
// which axes, and which value of the reference program was added.
//
//===----------------------------------------------------------------------===//
#include "compiler/check/GradientRules.h"

#include "compiler/check/Distribution.h"
#include "compiler/check/schedule/Effects.h"
#include "compiler/check/schedule/Layout.h"
#include "kernels/KernelTable.h"
#include "runtime/plan/world/Mesh.h"
#include "runtime/plan/world/Placement.h"

#include <algorithm>
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
/// parameter's contributions come from several roles: together they must be all that is expected or, if not `whole`,
/// be among it.
std::string checkMicrobatch(const RankMemory &memory, const OperandSegment &segment, uint64_t microbatch,
                            const Expected &expected, bool whole) {
  Values &values = memory.values();
  std::vector<uint32_t> added;
  for (const Contribution &one : segment.contributions)
    if (one.microbatch == microbatch)
      added.push_back(one.value);
  const auto text = [&](uint32_t number, uint64_t at) {
    return values.name(number) + " from its byte " + std::to_string(at) + " on";
  };
  const bool known = expected.value != Values::unknown && std::ranges::count(added, uint32_t(Values::unknown)) == 0;
  if (added.size() > 1 && (!known || !values.addUp(added, expected.value, whole)))
    return "holds micro-batch " + std::to_string(microbatch) + " " + std::to_string(added.size()) + " times";
  const bool sameElements = segment.value == Values::unknown || segment.valueByte == expected.byte;
  if (!known || (values.addUp(added, expected.value, whole) && sameElements))
    return {};
  return "is the sum of " + text(added[0], segment.valueByte) + ", not of " + text(expected.value, expected.byte);
}

/// Why a sum is not the gradient of a whole step, or empty.
std::string checkGradient(const RankMemory &memory, const OperandSegment &segment, const Expected &expected) {
  const proto::Training &training = memory.plan().training();
  const plan::AxisSet batch = plan::batchAxes(memory.plan());
  auto next = segment.contributions.begin(); // in the order of micro-batches
  for (uint64_t k = 0; k < training.accumulation_steps(); ++k) {
    const std::string number = "micro-batch " + std::to_string(k);
    if (next == segment.contributions.end() || next->microbatch != k)
      return "lacks " + number;
    if (std::string why = checkMicrobatch(memory, segment, k, expected, /*whole=*/true); !why.empty())
      return why;
    for (; next != segment.contributions.end() && next->microbatch == k; ++next)
      if (!next->summed.includes(batch))
        return "holds " + number + " of this rank alone; it was not summed over the ranks";
      else if (next->summed != batch)
        return "holds " + number +
               " summed over ranks that have the same samples, as many times as there are such ranks";
  }
  return {};
}

/// Why a sum is no gradient of the micro-batches up to this one, or empty: those that it holds it holds once, and this
/// one it does. A stage that reads a parameter and leaves its gradient to another has zeros; the update, which asks for
/// the whole, would miss what was left out.
std::string checkPartialGradient(const RankMemory &memory, const OperandSegment &segment, uint64_t microbatch,
                                 const Expected &expected) {
  const bool isNone = segment.contributions.empty() && segment.value == memory.values().zero();
  if (expected.value == Values::unknown || (isNone && memory.plan().roles_size() > 1))
    return {};
  if (std::ranges::count(segment.contributions, microbatch, &Contribution::microbatch) == 0)
    return "lacks micro-batch " + std::to_string(microbatch);
  uint64_t last = UINT64_MAX;
  for (const Contribution &one : segment.contributions) // in the order of micro-batches
    if (std::exchange(last, one.microbatch) != one.microbatch)
      if (std::string why = checkMicrobatch(memory, segment, one.microbatch, expected, /*whole=*/false); !why.empty())
        return why;
  return {};
}

/// Whether nothing is known of what another rank than the first of its role has there. The first has met the command.
bool isUnfollowed(const RankMemory &memory, const OperandSegment &segment) {
  return !memory.followsAll() && segment.value == Values::unknown && segment.contributions.empty();
}

/// What lies in bytes of an update's operand. Where that is not followed, what its buffer has when a run begins;
/// nothing is known of a buffer that has nothing then.
std::vector<OperandSegment> foundIn(RankMemory &memory, const proto::Operand &operand, uint64_t skip, uint64_t bytes,
                                    uint64_t microbatch) {
  if (memory.isFollowed(memory.rangeOf(operand, microbatch)))
    return memory.segmentsOf(operand, skip, bytes, microbatch);
  const proto::Buffer &buffer = memory.bufferOf(operand);
  if (!buffer.has_variable() && !buffer.has_bucket())
    return {{0, bytes}};
  const uint64_t first = memory.offsetIn(operand) + skip;
  std::vector<OperandSegment> segments;
  uint64_t end = 0;
  const auto pad = [&](uint64_t to) {
    if (end < to)
      segments.push_back({end, to, {}, memory.values().padding()});
  };
  for (const Member &member : Layout(memory.plan(), buffer, memory.rank).within(first, bytes)) {
    pad(member.begin - first);
    end = member.end - first;
    segments.push_back({member.begin - first, end, {}, memory.values().variable(member.variable), member.firstByte});
  }
  pad(bytes);
  return segments;
}

/// The parameters that an update finds in its operand, and the parts of them; counted from the operand's first byte.
std::vector<Member> parametersIn(RankMemory &memory, const proto::Operand &operand, size_t index) {
  const Values &values = memory.values();
  std::vector<Member> members;
  for (const OperandSegment &segment :
       foundIn(memory, operand, 0, byteCount(operand), memory.instance(index).microbatch)) {
    if (isUnfollowed(memory, segment) || values.isPadding(segment.value))
      continue;
    const auto held = values.heldIn(segment.value);
    if (held && held->version == Values::Version::Updated)
      memory.refuse("coverage", index,
                    "updates parameter " + variableName(memory, held->variable) + " a second time in one step");
    if (!held || held->version != Values::Version::Old)
      throw Mismatch{"its operand in " + memory.nameOf(operand.buffer()) + " holds " + values.name(segment.value) +
                     ", neither a parameter nor state"};
    Member next{held->variable, segment.begin, segment.end, segment.valueByte};
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
void requireOld(RankMemory &memory, size_t operand, uint32_t variable, const Member &parameter, size_t index) {
  const proto::Operand &own = memory.instance(index).command->kernel().operands(int(operand));
  const Values &values = memory.values();
  const uint32_t expected = memory.values().variable(variable);
  const auto text = [&](uint32_t value, uint64_t byte) {
    return values.name(value) + " from its byte " + std::to_string(byte) + " on";
  };
  for (const OperandSegment &segment :
       foundIn(memory, own, parameter.begin, parameter.end - parameter.begin, memory.instance(index).microbatch)) {
    const uint64_t byte = parameter.firstByte + segment.begin;
    const bool isOld = segment.value == expected && segment.valueByte == byte && segment.contributions.empty();
    if (!isOld && !isUnfollowed(memory, segment))
      memory.refuse(operand == kernels::KernelRow::gradient ? "coverage" : "meaning", index,
                    "its operand in " + memory.nameOf(own.buffer()) + " holds " +
                        text(segment.value, segment.valueByte) + ", but the update of " +
                        variableName(memory, parameter.variable) + " takes " + text(expected, byte));
  }
}

/// State is changed with its parameter alone: where that has padding, an operand that is written has nothing else.
void requireNoMore(RankMemory &memory, const proto::Operand &state, const std::vector<Member> &parameters,
                   size_t index) {
  if (!memory.followsAll() || state.access() != proto::Operand::READ_WRITE)
    return;
  uint64_t updated = 0, held = 0;
  for (const Member &parameter : parameters)
    updated += parameter.end - parameter.begin;
  for (const OperandSegment &segment : memory.segmentsOf(state, memory.instance(index).microbatch))
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

void requireGradient(RankMemory &memory, std::span<const uint32_t> values, size_t index) {
  const Instance &instance = memory.instance(index);
  const RoleContext &context = memory.context;
  const auto &operands = instance.command->kernel().operands();
  using Row = kernels::KernelRow;
  const proto::Operand &gradient = operands[Row::gradient];
  const bool mayTakeOne = context.program.has_tail() && !context.isInTail(instance.call);
  const std::vector<Member> members = parametersIn(memory, operands[Row::parameter], index);
  requireWhole(memory, *instance.command, members);
  for (size_t i = Row::state; i < size_t(operands.size()); ++i)
    requireNoMore(memory, operands[int(i)], members, index);
  for (const Member &member : members) {
    const Meaning::Update update =
        context.meaning.requireUpdate(*instance.command, member.variable, values, mayTakeOne);
    if (update.oneFor && update.oneFor != context.one)
      context.messages.byOne.insert({context.index, index});
    for (size_t i = 0; i < update.state.size() && Row::state + i < size_t(operands.size()); ++i)
      requireOld(memory, Row::state + i, update.state[i], member, index);
    if (update.pending) {
      requireOld(memory, Row::gradient, *update.pending, member, index);
      continue;
    }
    for (const OperandSegment &segment :
         memory.segmentsOf(gradient, member.begin, member.end - member.begin, instance.microbatch)) {
      if (isUnfollowed(memory, segment))
        continue;
      if (const std::string why = checkGradient(memory, segment, {update.added, member.firstByte + segment.begin});
          !why.empty())
        memory.refuse("coverage", index,
                      "the gradient of " + variableName(memory, member.variable) + " in " +
                          memory.nameOf(gradient.buffer()) + " " + why);
      requireOneSum(memory, segment, member.variable, index);
    }
  }
}

void requireSummed(RankMemory &memory, const proto::Operand &gradient, size_t index) {
  for (const OperandSegment &segment : memory.segmentsOf(gradient, memory.instance(index).microbatch)) {
    for (const Contribution &one : segment.contributions)
      if (!one.summed.includes(plan::batchAxes(memory.plan())))
        memory.refuse("coverage", index,
                      "squares a gradient that holds micro-batch " + std::to_string(one.microbatch) +
                          " of this rank alone; it was not summed over the ranks, or this rank added to the sum");
    const auto held = memory.values().heldIn(segment.value);
    if (!memory.followsAll() || segment.contributions.empty() || !held || held->variable == Values::noVariable)
      continue;
    const uint32_t added = memory.context.meaning.contributionTo(held->variable);
    if (const std::string why = checkGradient(memory, segment, {added, segment.valueByte}); !why.empty())
      memory.refuse("coverage", index, "squares " + variableName(memory, held->variable) + ", which " + why);
  }
}

std::string whyNotPending(const RankMemory &memory, const Content &content, uint32_t variable, uint64_t byte) {
  if (!memory.followsAll() && content.value == Values::unknown)
    return {}; // as of an update
  const Meaning &meaning = memory.context.meaning;
  const uint32_t added = meaning.gradientOf(meaning.delays().gradientIn(variable).value());
  const OperandSegment segment{0, 0, content.contributions, content.value, content.valueByte};
  return checkGradient(memory, segment, {added, byte});
}

std::vector<OperandSegment> summands(RankMemory &memory, const proto::Operand &source, uint64_t skip, uint64_t bytes,
                                     size_t index) {
  const Instance &instance = memory.instance(index);
  std::vector<OperandSegment> segments = memory.segmentsOf(source, skip, bytes, instance.microbatch);
  const proto::Buffer &buffer = memory.bufferOf(source);
  if (holdsSums(buffer) || (buffer.scope() != proto::Buffer::CALL && buffer.scope() != proto::Buffer::SLOT))
    return segments;
  for (OperandSegment &segment : segments) {
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
  return segments;
}

void requireSlices(RankMemory &memory, const proto::CollectivePart &part, size_t index) {
  const auto bucket = memory.context.schedule.bucketOf.find(part.target().buffer());
  if (!memory.followsAll() || bucket == memory.context.schedule.bucketOf.end())
    return;
  const proto::Bucket &updated = memory.plan().buckets(int(bucket->second));
  const uint64_t elements = byteCount(part.source()) / elementBytes(updated.dtype());
  const Layout whole(memory.plan(), plan::membersWithin(memory.plan(), updated, 0, elements));
  const uint64_t microbatch = memory.instance(index).microbatch;
  for (const Member &member : whole.within(0, byteCount(part.source()))) {
    const uint32_t added = memory.context.meaning.gradientOf(member.variable);
    for (const OperandSegment &segment :
         summands(memory, part.source(), member.begin, member.end - member.begin, index))
      if (const std::string why =
              checkPartialGradient(memory, segment, microbatch, {added, member.firstByte + segment.begin});
          !why.empty())
        memory.refuse("coverage", index,
                      "what it sums in " + memory.nameOf(part.source().buffer()) + " as the gradient of " +
                          variableName(memory, member.variable) + " " + why);
  }
}

} // namespace ds::check
