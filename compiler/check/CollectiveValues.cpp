//===- CollectiveValues.cpp - what collectives put into their targets -----===//
//
// Of ranks of one role the memory knows what all have side by side. What ranks of other roles have is looked up there.
//
//===----------------------------------------------------------------------===//
#include "compiler/check/GradientRules.h"
#include "compiler/check/MeaningRules.h"
#include "compiler/check/RankParts.h"
#include "compiler/check/WrittenValues.h"
#include "runtime/plan/world/Mesh.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace ds::check {

namespace {

/// The part of a collective whose target this is.
int partOf(const proto::CollectiveCommand &collective, const proto::Operand &target) {
  for (int i = 0; i < collective.parts_size(); ++i)
    if (&collective.parts(i).target() == &target)
      return i;
  return 0;
}

/// What ranks of other roles bring is of the micro-batch for which it is taken.
void requireSameMicrobatch(const RankMemory &memory, const RankMemory &theirs, const Instance &meeting,
                           const Contents &brought, size_t index) {
  const uint64_t microbatch = memory.instance(index).microbatch;
  if (meeting.microbatch != microbatch &&
      std::ranges::any_of(brought.segments, [&](const Known &one) { return theirs.isOfMicrobatch(one); }))
    memory.refuse("value", index,
                  "takes for micro-batch " + std::to_string(microbatch) + " what role " + theirs.role().name() +
                      " brings of micro-batch " + std::to_string(meeting.microbatch),
                  theirs.placeOf(meeting) + " brings it");
}

constexpr auto nothing = [](uint64_t bytes) { return Contents{{{0, bytes, {.value = Values::other}}}}; };

/// What ranks of one role have of a source, side by side.
Contents gathered(const RankMemory &memory, const proto::CollectivePart &part, uint32_t communicator, Contents own) {
  const plan::AxisSet axes = plan::axesOf(memory.plan(), communicator);
  const uint64_t bytes = byteCount(part.target());
  const auto isUnknown = [](const OperandSegment &one) { return one.value == Values::unknown; };
  if (std::ranges::all_of(own.segments, isUnknown))
    return {{{0, bytes}}};
  const auto differs = [&](const OperandSegment &one) {
    return one.varies - axes != one.varies || memory.isShared(one, axes);
  };
  if (own.along == axes && std::ranges::none_of(own.segments, differs))
    return {std::move(own.segments)}; // of one role, which has all ranks
  return own.along.empty() ? Contents{{{0, bytes, sideBySide(memory, axes, own.segments)}}} : nothing(bytes);
}

/// What a role brings to a collective. When the first role goes on, all have come, and nobody has written over their
/// sources yet.
const Contents &broughtTo(RankMemory &memory, int part, const Instance &meeting) {
  const auto [it, isNew] =
      memory.context.messages.brought.try_emplace({memory.context.index, meeting.call, meeting.index, uint32_t(part)});
  const proto::Operand &source = meeting.command->collective().parts(part).source();
  if (isNew)
    it->second = sums(meeting.command->collective())
                     ? summands(memory, source, memory.context.schedule.instanceOf[meeting.call][meeting.index])
                     : memory.contentsOf(source, meeting.microbatch);
  return it->second;
}

/// Whether ranks of all roles bring the same to a sum: what one has seen of its own holds for the others'.
bool allBringSame(RankMemory &memory, int part, size_t index) {
  const auto others = memory.context.joint.meetings.find({memory.context.index, index});
  if (others == memory.context.joint.meetings.end())
    return true;
  const Contents &own = broughtTo(memory, part, memory.instance(index));
  return std::ranges::all_of(others->second, [&](const auto &other) {
    RankMemory &role = *memory.context.memories[other.first];
    const Contents &theirs = broughtTo(role, part, other.second);
    requireSameMicrobatch(memory, role, other.second, theirs, index);
    return std::ranges::equal(own.segments, theirs.segments, [](const OperandSegment &a, const OperandSegment &b) {
      return a.begin == b.begin && a.end == b.end && a.value == b.value && a.valueByte == b.valueByte &&
             a.contributions == b.contributions;
    });
  });
}

/// What ranks of several roles have, side by side; nothing where they are of one.
std::optional<Contents> gatheredFromRoles(RankMemory &memory, int part, size_t index) {
  const auto others = memory.context.joint.meetings.find({memory.context.index, index});
  if (others == memory.context.joint.meetings.end())
    return std::nullopt;
  const Instance &own = memory.instance(index);
  const proto::CollectiveCommand &collective = own.command->collective();
  std::map<const proto::Role *, std::pair<RankMemory *, const Contents *>> sources = {
      {&memory.role(), {&memory, &broughtTo(memory, part, own)}}};
  for (const auto &[role, instance] : others->second) {
    RankMemory &theirs = *memory.context.memories[role];
    const Contents &brought = broughtTo(theirs, part, instance);
    requireSameMicrobatch(memory, theirs, instance, brought, index);
    sources[&theirs.role()] = {&theirs, &brought};
  }
  const uint64_t bytes = byteCount(collective.parts(part).source());
  const plan::AxisSet axes = plan::axesOf(memory.plan(), collective.communicator());
  Contents all;
  for (const uint32_t rank : plan::Group(memory.plan(), collective.communicator()).ranks(memory.rank)) {
    const uint64_t begin = all.segments.empty() ? 0 : all.segments.back().end;
    const RankMemory &theirs = *sources.at(&plan::roleOfRank(memory.plan(), rank)).first;
    const Contents &source = *sources.at(&theirs.role()).second;
    const uint64_t coordinate = plan::Group(memory.plan().world(), source.along).coordinate(rank);
    const Coordinates &ranks = theirs.coordinates(source.along);
    for (OperandSegment segment : cut(source.segments, (coordinate - ranks.first) / ranks.step * bytes, bytes)) {
      if (!axes.includes(source.along) || segment.varies - axes != segment.varies || memory.isShared(segment, axes))
        static_cast<Known &>(segment) = {.value = Values::other};
      segment.begin += begin;
      segment.end += begin;
      all.segments.push_back(std::move(segment));
    }
  }
  return all;
}

/// What the sum of a value over the ranks is: the variable that it is said to be summed into. Sums of gradients are
/// followed by their contributions. Of anything else the reference program knows no such sum, even where all ranks have
/// the same: it is as many times as much.
uint32_t summedValue(RankMemory &memory, const OperandSegment &segment, const proto::CollectivePart &part,
                     size_t index) {
  Values &values = memory.values();
  const Instance &instance = memory.instance(index);
  const proto::Command &command = *instance.command;
  const uint32_t value = segment.value, exact = values.unconverted(value);
  const bool isBetweenMembers = value == values.zero() || value == values.padding();
  for (uint32_t reference : command.reference()) {
    const proto::ReferenceOp &op = memory.plan().reference().ops(int(reference));
    const bool isAll = command.reference_size() == 1 && command.collective().parts_size() == 1 && !isBetweenMembers;
    if (op.op() != "train.accumulate" || op.operands_size() == 0)
      continue;
    const uint32_t added = values.placedAs(op.variables(0), values.of(op.operands(0))); // may be a conversion itself
    if (!isAll && added != value && !memory.context.meaning.isPartOf(exact, added))
      continue;
    const uint32_t before = part.accumulate() ? memory.valueIn(part.target(), instance.microbatch) : values.zero();
    const uint32_t sum = countsMicrobatches(memory.plan(), op) ? withMicrobatch(memory, op, before, index)
                                                               : values.variable(op.variables(0));
    return value == Values::unknown ? sum : values.converted(sum, values.type(value).dtype);
  }
  const bool isGradient = !segment.contributions.empty() || isBetweenMembers;
  return isGradient ? value : values.summedOverRanks(value);
}

/// What a broadcast makes of its source: the first rank's, which is everybody's only where all have the same.
void takeFirst(const RankMemory &memory, Contents &contents, uint32_t communicator) {
  const plan::AxisSet axes = plan::axesOf(memory.plan(), communicator);
  const uint32_t first = plan::Group(memory.plan(), communicator).first(memory.rank);
  const bool isOfRole = plan::roleOfRank(memory.plan(), first).name() == memory.role().name();
  for (OperandSegment &segment : contents.segments)
    if (contents.along - axes != contents.along || !isOfRole || memory.isShared(segment, axes))
      static_cast<Known &>(segment) = {.value = Values::other};
    else if (segment.varies - axes != segment.varies || !segment.contributions.empty())
      static_cast<Known &>(segment) = {.value = memory.values().ofRank(segment.value, "the first rank"),
                                       .valueByte = segment.valueByte};
}

/// Several micro-batches of each rank, added up before the ranks', are added up in another order than one rank's, which
/// adds those of all ranks one by one. NCCL has an order of its own.
void requireOrder(const RankMemory &memory, const std::vector<Contribution> &added, size_t index) {
  const uint32_t communicator = memory.instance(index).command->collective().communicator();
  if (memory.plan().numerics() != "bit-equal" || plan::Group(memory.plan(), communicator).size() == 1)
    return;
  if (memory.plan().machine().device() == "cuda")
    memory.refuse("numerics", index, "sums over ranks in an order of NCCL's own, and the plan says bit-equal");
  const plan::AxisSet batch = plan::batchAxes(memory.plan());
  const bool joinsBatches = batch - plan::axesOf(memory.plan(), communicator) != batch;
  for (const Contribution &one : added)
    if (one.microbatch != added.front().microbatch && joinsBatches)
      memory.refuse("numerics", index,
                    "sums over ranks what is a sum of micro-batches " + std::to_string(added.front().microbatch) +
                        " and " + std::to_string(one.microbatch) +
                        " already, in another order than one rank's, and the plan says bit-equal");
}

/// What the sum over ranks along other axes than that of micro-batches is: of terms the value, and of anything else as
/// many times as much. Of gradients it is that of each micro-batch's.
void addUpTerms(const RankMemory &memory, std::vector<OperandSegment> &segments, plan::AxisSet axes, size_t index) {
  Values &values = memory.values();
  bool areTerms = false;
  const auto sumOf = [&](uint32_t value) {
    const std::optional<uint32_t> whole = values.addedUp(value, axes);
    areTerms |= whole && *whole != value;
    return whole ? *whole : values.summedOverRanks(value);
  };
  for (OperandSegment &segment : segments) {
    for (Contribution &one : segment.contributions)
      one.value = sumOf(one.value);
    std::ranges::sort(segment.contributions);
    if (segment.value == values.zero() || segment.value == values.padding())
      continue;
    segment.value = segment.contributions.empty() ? sumOf(segment.value)
                                                  : values.addedUp(segment.value, axes).value_or(segment.value);
  }
  if (areTerms && memory.plan().numerics() == "bit-equal")
    memory.refuse("numerics", index,
                  "adds up terms over ranks, in another order than one rank's sum, and the plan says bit-equal");
}

/// What an all_reduce or reduce_scatter makes of its source, slice by slice.
void sumOverRanks(RankMemory &memory, std::vector<OperandSegment> &segments, const proto::CollectivePart &part,
                  size_t index) {
  const plan::AxisSet axes = plan::axesOf(memory.plan(), memory.instance(index).command->collective().communicator());
  const plan::AxisSet terms = axes - plan::batchAxes(memory.plan()), batch = axes - terms;
  if (!terms.empty())
    addUpTerms(memory, segments, terms, index);
  if (!terms.empty() && batch.empty())
    return;
  for (OperandSegment &segment : segments) {
    for (Contribution &one : segment.contributions) {
      if (one.summed - batch != one.summed)
        memory.refuse("coverage", index,
                      "sums over the ranks what is such a sum already: micro-batch " + std::to_string(one.microbatch) +
                          " in " + memory.nameOf(part.source().buffer()));
      one.summed = one.summed | batch;
    }
    requireOrder(memory, segment.contributions, index);
    segment.value = summedValue(memory, segment, part, index);
  }
}

/// Of a sum over ranks each has a slice. Along an axis other than that of micro-batches it has a part of a value then,
/// if it is all of one, which kernels may compute with.
Contents scattered(const RankMemory &memory, Contents sum, const proto::CollectivePart &part, uint32_t communicator) {
  const plan::AxisSet axes = plan::axesOf(memory.plan(), communicator);
  const uint64_t bytes = byteCount(part.target());
  if (axes.empty())
    return sum;
  if (!sum.along.empty())
    return nothing(bytes);
  if (const std::optional<Contents> part = partOfEach(memory, axes, sum.segments, bytes))
    return *part;
  return memory.shared(sum.segments, bytes, axes);
}

/// What ranks that share a micro-batch bring together is its own, also among sums of gradients.
Contents ofMicrobatch(const RankMemory &memory, const proto::Operand &target, plan::AxisSet axes, Contents contents,
                      size_t index) {
  const plan::AxisSet batch = plan::batchAxes(memory.plan());
  const Values &values = memory.values();
  if (!holdsSums(memory.bufferOf(target)) || axes.empty() || axes - batch != axes)
    return contents;
  for (OperandSegment &segment : contents.segments)
    if (segment.contributions.empty() && segment.value > Values::other && values.type(segment.value).elements)
      segment.contributions = {{memory.instance(index).microbatch, {}, segment.value}};
  return contents;
}

} // namespace

Contents resultOfCollective(RankMemory &memory, const proto::Operand &target, size_t index) {
  const Instance &instance = memory.instance(index);
  const proto::CollectiveCommand &collective = instance.command->collective();
  const int number = partOf(collective, target);
  const proto::CollectivePart &part = collective.parts(number);
  const plan::AxisSet axes = plan::axesOf(memory.plan(), collective.communicator());
  switch (collective.kind()) {
  case proto::CollectiveCommand::ALL_GATHER:
    if (auto all = gatheredFromRoles(memory, number, index))
      return *std::move(all);
    return ofMicrobatch(
        memory, target, axes,
        gathered(memory, part, collective.communicator(), memory.contentsOf(part.source(), instance.microbatch)),
        index);
  case proto::CollectiveCommand::BROADCAST: {
    Contents first = memory.contentsOf(part.source(), instance.microbatch);
    takeFirst(memory, first, collective.communicator());
    return first;
  }
  case proto::CollectiveCommand::ALL_REDUCE:
  case proto::CollectiveCommand::REDUCE_SCATTER:
    break;
  default: // all_to_all: of other ranks' micro-batches, which no op takes
    return nothing(byteCount(target));
  }
  Contents sum = summands(memory, part.source(), index);
  if (sum.along - axes != sum.along || !allBringSame(memory, number, index)) // of other elements on each rank
    return nothing(byteCount(target));
  sumOverRanks(memory, sum.segments, part, index);
  if (collective.kind() == proto::CollectiveCommand::REDUCE_SCATTER)
    sum = scattered(memory, std::move(sum), part, collective.communicator());
  sum = ofMicrobatch(memory, target, axes, std::move(sum), index);
  if (!part.accumulate())
    return sum;
  Contents before = memory.contentsOf(target, instance.microbatch);
  if (takesMicrobatch(memory.plan(), *instance.command)) // what lay there was looked at, and is in the sum's value
    for (OperandSegment &segment : before.segments)
      segment.value = memory.values().zero();
  return sumOf(memory, sum, before).value_or(nothing(byteCount(target)));
}

} // namespace ds::check
