//===- CollectiveValues.cpp - what collectives put into their targets -----===//
//
// Ranks of one role hold the same at their own places, so one rank's slice speaks for those of the others. Slices that
// ranks of other roles have are looked up there.
//
//===----------------------------------------------------------------------===//
#include "compiler/check/Distribution.h"
#include "compiler/check/GradientRules.h"
#include "compiler/check/MeaningRules.h"
#include "compiler/check/NormRules.h"
#include "compiler/check/WrittenValues.h"
#include "compiler/check/schedule/Layout.h"
#include "runtime/plan/world/Mesh.h"
#include "runtime/plan/world/Placement.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace ds::check {

namespace {

/// The one axis of the mesh along which the ranks of a communicator differ; nothing where there are several, or none.
std::optional<uint32_t> onlyAxisOf(const proto::Plan &plan, uint32_t communicator) {
  std::optional<uint32_t> only;
  for (const uint32_t axis : plan.communicators(int(communicator)).axes())
    if (plan::axesOf(plan, communicator).contains(axis)) {
      if (only)
        return std::nullopt;
      only = axis;
    }
  return only;
}

/// Whether the ranks of a communicator have other parts of what a segment holds, or other terms of it.
bool isShared(const RankMemory &memory, const OperandSegment &segment, uint32_t communicator) {
  const plan::AxisSet axes = plan::axesOf(memory.plan(), communicator);
  const Values &values = memory.values();
  for (const Values::Placed *placed = values.placedIn(segment.value); placed; placed = values.placedIn(placed->whole))
    if (axes.contains(placed->spread.axis))
      return true;
  return false;
}

/// The n-th of n parts along an axis, which lie side by side when they are gathered.
Spread sliceOf(const Values &values, uint32_t value, uint32_t axis, uint64_t parts) {
  return {axis, {}, Cut::inParts(1, parts, values.type(value).elements.value_or(0) / parts)};
}

/// Whether segments are all of one value, behind its first `skip` bytes.
bool isAll(const Values &values, const std::vector<OperandSegment> &segments, uint64_t skip) {
  const uint32_t value = segments.front().value;
  const ValueType &type = values.type(value);
  if (value <= Values::other || !type.elements ||
      segments.back().valueByte + segments.back().end - segments.back().begin !=
          *type.elements * elementBytes(type.dtype))
    return false;
  return std::ranges::all_of(
      segments, [&](const OperandSegment &one) { return one.value == value && one.valueByte == one.begin + skip; });
}

/// What parts along the axis of a communicator are side by side, if `own` is this rank's; nothing where they are not
/// its ranks' in their order.
std::optional<uint32_t> joinedParts(const RankMemory &memory, uint32_t communicator,
                                    const std::vector<OperandSegment> &own) {
  const std::optional<uint32_t> axis = onlyAxisOf(memory.plan(), communicator);
  const Values &values = memory.values();
  const Values::Placed *placed = own.empty() ? nullptr : values.placedIn(own.front().value);
  if (!placed || !axis ||
      placed->spread != sliceOf(values, placed->whole, *axis, plan::Group(memory.plan(), communicator).size()))
    return std::nullopt;
  return isAll(values, own, 0) ? std::optional(placed->whole) : std::nullopt;
}

/// The part of a collective whose target this is.
int partOf(const proto::CollectiveCommand &collective, const proto::Operand &target) {
  for (int i = 0; i < collective.parts_size(); ++i)
    if (&collective.parts(i).target() == &target)
      return i;
  return 0;
}

/// A bucket as a gather carries it: in its own element type, or converted to a smaller one.
class CarriedBucket {
public:
  /// The bucket's element size is a multiple of `dtype`'s.
  CarriedBucket(RankMemory &memory, const proto::Buffer &buffer, proto::DType dtype, Values::Version version)
      : values_(memory.values()), dtype_(dtype), version_(version),
        factor_(elementBytes(dtypeOf(memory, buffer)) / elementBytes(dtype)),
        layout_(memory.plan(), plan::heldTogether(memory.plan(), buffer)) {}
  static proto::DType dtypeOf(const RankMemory &memory, const proto::Buffer &buffer) {
    return memory.plan().buckets(int(buffer.bucket())).dtype();
  }

  /// Members in these bytes of what is gathered, cut to fit.
  std::vector<Member> within(uint64_t offset, uint64_t bytes) const {
    std::vector<Member> members = layout_.within(offset * factor_, bytes * factor_);
    for (Member &member : members)
      member = {member.variable, member.begin / factor_, member.end / factor_, member.firstByte / factor_};
    return members;
  }
  uint32_t valueOf(const Member &member) const {
    return values_.converted(values_.variable(member.variable, version_), dtype_);
  }

  /// Whether a slice holds the elements of the members that lie there, and padding of their version; what is not known
  /// may be.
  bool holdsSlice(uint64_t offset, const std::vector<OperandSegment> &slice) const {
    for (const OperandSegment &segment : slice) {
      if (const auto held = values_.heldIn(values_.unconverted(segment.value)); held && held->version != version_)
        return false;
      for (const Member &member : within(offset + segment.begin, segment.end - segment.begin)) {
        const uint64_t byte = segment.valueByte + member.begin - (offset + segment.begin);
        if (segment.value != Values::unknown && (segment.value != valueOf(member) || byte != member.firstByte))
          return false;
      }
    }
    return true;
  }

private:
  Values &values_;
  const proto::DType dtype_;
  const Values::Version version_;
  const uint64_t factor_;
  const Layout layout_;
};

/// What a slice holds first of a variable or, where it holds none, of padding.
Values::Held firstIn(const Values &values, const std::vector<OperandSegment> &slice) {
  Values::Held first{Values::noVariable, Values::Version::Old};
  for (const OperandSegment &segment : slice)
    if (const auto held = values.heldIn(values.unconverted(segment.value));
        held && first.variable == Values::noVariable)
      first = *held;
  return first;
}

/// The bucket of which a slice was copied, or converted, to what a gather sends: the one with a variable that it holds.
const proto::Buffer *convertedBucket(const RankMemory &memory, const proto::CollectivePart &part, uint32_t variable) {
  const uint64_t size = elementBytes(part.source().dtype());
  for (const proto::Buffer &buffer : memory.role().buffers()) {
    if (!buffer.has_bucket() || std::ranges::count(memory.plan().buckets(int(buffer.bucket())).members(), variable,
                                                   &proto::BucketMember::variable) == 0)
      continue;
    const uint64_t wide = elementBytes(CarriedBucket::dtypeOf(memory, buffer)),
                   sent = byteCount(plan::holdsWindow(memory.plan(), buffer) ? part.source() : part.target());
    if (wide >= size && wide % size == 0 && buffer.bytes() / wide == sent / size)
      return &buffer;
  }
  return nullptr;
}

/// A bucket's parameters side by side, where a whole bucket is gathered. Ranks of one role hold the same at their own
/// places, so all is there if `own`, this rank's slice, is.
std::vector<OperandSegment> gathered(RankMemory &memory, const proto::CollectivePart &part, uint32_t communicator,
                                     const std::vector<OperandSegment> &own) {
  const auto [variable, version] = firstIn(memory.values(), own);
  const uint64_t bytes = byteCount(part.target());
  const uint64_t offset = plan::Group(memory.plan(), communicator).coordinate(memory.rank) * byteCount(part.source());
  if (const std::optional<uint32_t> whole = joinedParts(memory, communicator, own))
    return {{0, bytes, {}, *whole}};
  if (std::ranges::any_of(own, [&](const OperandSegment &one) { return isShared(memory, one, communicator); }))
    return {{0, bytes, {}, Values::other}};
  const proto::Buffer &source = memory.bufferOf(part.source()), &target = memory.bufferOf(part.target());
  const bool isWhole = target.has_bucket() && !plan::holdsWindow(memory.plan(), target) && bytes == target.bytes();
  const bool isOfSlice = plan::holdsWindow(memory.plan(), source) && byteCount(part.source()) == source.bytes();
  const proto::Buffer *itself = isWhole ? &target : isOfSlice ? &source : nullptr;
  const proto::Buffer *gathers = itself ? itself : convertedBucket(memory, part, variable);
  if (!gathers)
    return {{0, bytes}};
  const proto::DType dtype = itself ? CarriedBucket::dtypeOf(memory, *itself) : part.source().dtype();
  const CarriedBucket bucket(memory, *gathers, dtype, version);
  if (!bucket.holdsSlice(offset, own))
    return {{0, bytes, {}, Values::other}};
  std::vector<OperandSegment> segments = {{0, bytes, {}, memory.values().variable(Values::noVariable, version)}};
  for (const Member &member : bucket.within(0, bytes))
    segments.push_back({member.begin, member.end, {}, bucket.valueOf(member), member.firstByte});
  return segments;
}

/// What a role puts into an all_gather. When the first role goes on, all have come, and nobody has written over their
/// sources yet.
const std::vector<OperandSegment> &sourceOf(RankMemory &memory, int part, const Instance &gather) {
  const auto [it, isNew] =
      memory.context.messages.gathered.try_emplace({memory.context.index, gather.call, gather.index, uint32_t(part)});
  if (isNew)
    it->second = memory.segmentsOf(gather.command->collective().parts(part).source(), gather.microbatch);
  return it->second;
}

/// What ranks of several roles have, side by side; nothing where they are of one.
std::optional<std::vector<OperandSegment>> gatheredFromRoles(RankMemory &memory, int part, size_t index) {
  const auto others = memory.context.joint.gathers.find({memory.context.index, index});
  if (!memory.followsAll() || others == memory.context.joint.gathers.end())
    return std::nullopt;
  const Instance &own = memory.instance(index);
  const proto::CollectiveCommand &collective = own.command->collective();
  std::map<uint32_t, const std::vector<OperandSegment> *> slices = {{memory.rank, &sourceOf(memory, part, own)}};
  for (const auto &[role, instance] : others->second) {
    RankMemory &theirs = *memory.context.memories[role];
    slices[theirs.rank] = &sourceOf(theirs, part, instance);
  }
  const uint64_t bytes = byteCount(collective.parts(part).source());
  std::vector<OperandSegment> segments;
  for (uint32_t rank : plan::Group(memory.plan(), collective.communicator()).ranks(memory.rank)) {
    const uint64_t begin = segments.empty() ? 0 : segments.back().end;
    const auto slice = slices.find(rank); // of a rank that is not the first of its role nothing is known
    for (OperandSegment segment : slice == slices.end() ? std::vector<OperandSegment>{{0, bytes}} : *slice->second) {
      segment.begin += begin;
      segment.end += begin;
      segments.push_back(segment);
    }
  }
  return segments;
}

/// What the sum of a value over the ranks is: the variable that it is said to be summed into. Sums of gradients are
/// followed by their contributions. Of anything else the reference program knows no such sum, even where all ranks have
/// the same: it is as many times as much.
uint32_t summedValue(RankMemory &memory, const OperandSegment &segment, const proto::Command &command) {
  Values &values = memory.values();
  const uint32_t value = segment.value, exact = values.unconverted(value);
  const bool isBetweenMembers = value == values.zero() || value == values.padding();
  for (uint32_t reference : command.reference()) {
    const proto::ReferenceOp &op = memory.plan().reference().ops(int(reference));
    const bool isAll = command.reference_size() == 1 && command.collective().parts_size() == 1 && !isBetweenMembers;
    const uint32_t added = values.of(op.operands(0)); // may be a conversion itself
    if (op.op() != "train.accumulate" || (!isAll && added != value && !memory.context.meaning.isPartOf(exact, added)))
      continue;
    const uint32_t sum = values.variable(op.variables(0));
    return value == Values::unknown ? sum : values.converted(sum, values.type(value).dtype);
  }
  const bool isGradient = !segment.contributions.empty() || isBetweenMembers;
  return isGradient ? value : values.summedOverRanks(value);
}

/// What a broadcast makes of its source: the first rank's, which is everybody's only where all have the same.
void takeFirst(RankMemory &memory, std::vector<OperandSegment> &segments, const proto::CollectivePart &part,
               uint32_t communicator) {
  const bool isSlice =
      part.source().rank_stride() > 0 || plan::holdsWindow(memory.plan(), memory.bufferOf(part.source()));
  const plan::AxisSet axes = plan::axesOf(memory.plan(), communicator);
  const uint32_t first = plan::Group(memory.plan(), communicator).first(memory.rank);
  const bool isOfRole = plan::roleOfRank(memory.plan(), first).name() == memory.role().name();
  for (OperandSegment &segment : segments)
    if (isSlice || !isOfRole || isShared(memory, segment, communicator))
      segment.value = Values::other;
    else if (segment.varies - axes != segment.varies)
      segment.value = memory.values().ofFirstRank(segment.value);
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
void addUpTerms(RankMemory &memory, std::vector<OperandSegment> &segments, plan::AxisSet axes, size_t index) {
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
  const proto::Command &command = *memory.instance(index).command;
  const plan::AxisSet axes = plan::axesOf(memory.plan(), command.collective().communicator());
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
    segment.value = summedValue(memory, segment, command);
  }
}

/// Of a sum of terms along an axis other than that of micro-batches, each rank has a slice: of all of a value, which
/// lies in the source, the bytes behind the first `skip`.
void cutIntoSlices(RankMemory &memory, std::vector<OperandSegment> &segments, const proto::CollectivePart &part,
                   uint32_t communicator, uint64_t skip) {
  const std::optional<uint32_t> axis = onlyAxisOf(memory.plan(), communicator);
  if (!axis || plan::batchAxes(memory.plan()).contains(*axis))
    return;
  Values &values = memory.values();
  for (OperandSegment &segment : segments) {
    if (segment.value <= Values::other || segment.value == values.zero())
      continue;
    const ValueType type = values.type(segment.value);
    const bool isAll = segment.valueByte == skip + segment.begin && type.elements &&
                       *type.elements * elementBytes(type.dtype) == byteCount(part.source());
    const uint64_t ranks = plan::Group(memory.plan(), communicator).size();
    segment.value =
        isAll ? values.placed(segment.value, sliceOf(values, segment.value, *axis, ranks)) : uint32_t(Values::other);
    segment.valueByte = segment.begin;
  }
}

/// What is summed, on what was there before. Of another rank the replay may follow one micro-batch's part and not
/// another's, which lies elsewhere; then nothing is known of the sum.
std::vector<OperandSegment> addedTo(RankMemory &memory, const std::vector<OperandSegment> &before,
                                    const std::vector<OperandSegment> &segments) {
  std::vector<OperandSegment> sums = sumOf(segments, before);
  if (memory.followsAll())
    return sums;
  Values &values = memory.values();
  for (OperandSegment &sum : sums)
    for (const std::vector<OperandSegment> *parts : {&before, &segments})
      for (const OperandSegment &part : *parts)
        if (part.begin < sum.end && sum.begin < part.end && part.contributions.empty() && part.value != values.zero() &&
            part.value != values.padding())
          sum = {sum.begin, sum.end};
  return sums;
}

/// All slices of a sum, for ranks of which not every byte is followed.
void rememberWhole(RankMemory &memory, const proto::CollectivePart &part, size_t index) {
  const uint32_t communicator = memory.instance(index).command->collective().communicator();
  Scattered all{summands(memory, part.source(), 0, byteCount(part.source()), index), communicator};
  sumOverRanks(memory, all.whole, part, index);
  for (OperandSegment &segment : all.whole)
    segment.varies = segment.varies - plan::axesOf(memory.plan(), communicator);
  auto &scattered = memory.context.messages.scattered;
  const std::pair place(memory.context.index, part.target().buffer());
  if (part.accumulate()) {
    const auto before = scatteredIn(memory, part.target(), communicator,
                                    memory.segmentsOf(part.target(), memory.instance(index).microbatch));
    if (!before)
      return void(scattered.erase(place));
    all.whole = sumOf(all.whole, before->whole);
  }
  scattered[place] = std::move(all);
}

} // namespace

std::vector<OperandSegment> resultOfCollective(RankMemory &memory, const proto::Operand &target, size_t index) {
  const Instance &instance = memory.instance(index);
  const proto::CollectiveCommand &collective = instance.command->collective();
  const int number = partOf(collective, target);
  const proto::CollectivePart &part = collective.parts(number);
  if (collective.kind() == proto::CollectiveCommand::ALL_GATHER) {
    if (const auto segments = gatheredFromRoles(memory, number, index))
      return *segments;
    const std::vector<OperandSegment> own = memory.segmentsOf(part.source(), instance.microbatch);
    if (auto sums = gatheredSquares(memory, part, collective.communicator(), own))
      return *sums;
    return gathered(memory, part, collective.communicator(), own);
  }
  const uint64_t bytes = byteCount(target);
  if (collective.kind() == proto::CollectiveCommand::ALL_TO_ALL)
    return {{0, bytes, {}, Values::other}}; // of other ranks' micro-batches, which no op takes
  const bool scatters = collective.kind() == proto::CollectiveCommand::REDUCE_SCATTER;
  const uint64_t skip =
      scatters ? plan::Group(memory.plan(), collective.communicator()).coordinate(memory.rank) * bytes : 0;
  std::vector<OperandSegment> segments = {{0, bytes}}; // a sum of what is not followed
  if (memory.isFollowed(memory.rangeOf(part.source(), instance.microbatch)))
    segments = summands(memory, part.source(), skip, bytes, index);
  if (collective.kind() == proto::CollectiveCommand::BROADCAST) {
    takeFirst(memory, segments, part, collective.communicator());
    return segments;
  }
  sumOverRanks(memory, segments, part, index);
  if (scatters)
    cutIntoSlices(memory, segments, part, collective.communicator(), skip);
  if (scatters && memory.followsAll())
    rememberWhole(memory, part, index);
  return part.accumulate() ? addedTo(memory, memory.segmentsOf(target, instance.microbatch), segments) : segments;
}

} // namespace ds::check
