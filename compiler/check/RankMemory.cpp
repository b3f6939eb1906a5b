//===- RankMemory.cpp - what the arenas of a role's ranks hold in a run ---===//
#include "compiler/check/RankMemory.h"

#include "compiler/check/RankParts.h"
#include "compiler/check/schedule/Effects.h"
#include "compiler/check/schedule/Layout.h"
#include "runtime/plan/run/ProgramLives.h"
#include "runtime/plan/world/Mesh.h"
#include "runtime/plan/world/Placement.h"

#include <algorithm>
#include <utility>

namespace ds::check {

bool Range::overlaps(const Range &other) const {
  if (arena != other.arena)
    return false;
  if (slices.stride == other.slices.stride && slices.along == other.slices.along)
    return begin < other.end && other.begin < end;
  const auto lastOf = [](const Range &one) { return one.end + one.slices.stride * (one.ranks - 1); };
  if (ranks > 1 && other.ranks > 1) // along other axes: some rank may well have both
    return begin < lastOf(other) && other.begin < lastOf(*this);
  const Range &sliced = ranks > 1 ? *this : other, &whole = ranks > 1 ? other : *this;
  const uint64_t first = whole.begin < sliced.end ? 0 : (whole.begin - sliced.end) / sliced.slices.stride + 1;
  return first < sliced.ranks && sliced.begin + first * sliced.slices.stride < whole.end;
}

RankMemory::RankMemory(const RoleContext &context) : context(context), rank(context.role().ranks(0)) {
  for (const proto::Arena &arena : role().arenas())
    shadows_.emplace_back().common.assign(0, arena.bytes(), {});
  for (int b = 0; b < role().buffers_size(); ++b)
    if (role().buffers(b).has_variable() || role().buffers(b).has_bucket())
      setInitial(uint32_t(b));
}

/// A buffer that holds variables, or a rank's share of a bucket, does when a run begins. Between them is padding.
void RankMemory::setInitial(uint32_t index) {
  const proto::Buffer &buffer = role().buffers(int(index));
  const Coordinates &ranks = coordinates(sharedAlong(buffer));
  Contents initial{{}, ranks.along};
  uint64_t end = 0;
  const auto pad = [&](uint64_t to) {
    if (end < to)
      initial.segments.emplace_back(end, to, Known{.value = values().padding()});
  };
  for (const Member &member : membersOf(buffer)) {
    pad(member.begin);
    end = member.end;
    initial.segments.emplace_back(member.begin, end,
                                  Known{.value = context.changes.initial(member.variable),
                                        .valueByte = member.firstByte,
                                        .varies = context.changes.varying(member.variable)});
  }
  pad(buffer.bytes() * ranks.count);
  Segment written;
  written.content.kind = Content::Written;
  written.content.buffer = index;
  put({buffer.arena(), buffer.offset(), buffer.offset() + buffer.bytes()}, written, initial);
}

const Coordinates &RankMemory::coordinates(plan::AxisSet axes) const {
  const auto [known, isNew] = coordinates_.try_emplace(axes);
  if (!isNew || axes.empty())
    return known->second;
  const plan::Group group(plan().world(), axes);
  std::map<uint64_t, uint64_t> times; // by coordinate
  for (int i = 0; i + 1 < role().ranks_size(); i += 2)
    for (uint64_t one = role().ranks(i); one <= role().ranks(i + 1); ++one)
      ++times[group.coordinate(one)];
  Coordinates &found = known->second;
  found.first = times.begin()->first;
  found.count = times.size();
  found.step = found.count > 1 ? std::next(times.begin())->first - found.first : 1;
  uint64_t next = found.first;
  for (const auto &[coordinate, count] : times) {
    if (coordinate != next || count != times.begin()->second)
      throw Refusal{"coverage", "role " + role().name() +
                                    ": its ranks do not stand alike among those that differ along " +
                                    "axes of the world; each role has a regular part of the mesh"};
    next += found.step;
  }
  for (uint32_t axis = 0; axis < uint32_t(plan().world().axes_size()); ++axis)
    if (axes.contains(axis) && found.count > 1)
      for (int i = 0; i < role().ranks_size(); ++i)
        if (plan::axisCoordinate(plan().world(), axis, role().ranks(i)) !=
            plan::axisCoordinate(plan().world(), axis, rank))
          found.along.add(axis);
  return found;
}

bool RankMemory::isEveryRank(plan::AxisSet axes) const {
  return coordinates(axes).count == plan::Group(plan().world(), axes).size();
}

/// Of what all ranks have side by side, `bytes` each: what some of them have. Neighbours' is cut out at once.
template <typename Piece>
static std::vector<Piece> piecesOf(const Coordinates &ranks, const std::vector<Piece> &whole, uint64_t bytes) {
  const bool areSide = ranks.step == 1 || ranks.count == 1;
  std::vector<Piece> pieces;
  for (uint64_t k = 0; k < (areSide ? 1 : ranks.count); ++k) {
    const uint64_t first = (ranks.first + k * ranks.step) * bytes;
    for (Piece &one : within(whole, first, first + bytes * (areSide ? ranks.count : 1))) {
      one.begin = one.begin - first + k * bytes;
      one.end = one.end - first + k * bytes;
      pieces.push_back(std::move(one));
    }
  }
  return pieces;
}

Contents RankMemory::shared(const std::vector<OperandSegment> &whole, uint64_t bytes, plan::AxisSet axes) const {
  return {piecesOf(coordinates(axes), whole, bytes), coordinates(axes).along};
}

std::vector<Member> RankMemory::membersOf(const proto::Buffer &buffer) const {
  return piecesOf(coordinates(sharedAlong(buffer)), check::membersOf(plan(), buffer), buffer.bytes());
}

plan::AxisSet RankMemory::sharedAlong(const proto::Buffer &buffer) const {
  if (!plan::holdsWindow(plan(), buffer))
    return {};
  return plan::axesOf(plan(), plan().buckets(int(buffer.bucket())).placement().window().communicator());
}

Range RankMemory::rangeOf(const proto::Operand &operand, uint64_t microbatch) const {
  const proto::Buffer &buffer = bufferOf(operand);
  const uint64_t begin = plan::slotOffset(buffer, microbatch) + operand.byte_offset();
  Range range{buffer.arena(), begin, begin + byteCount(operand)};
  if (operand.rank_stride() > 0) {
    const Coordinates &ranks = coordinates(plan::axesOf(plan(), operand.communicator()));
    range.begin += ranks.first * operand.rank_stride();
    range.end += ranks.first * operand.rank_stride();
    range.ranks = ranks.count;
    if (ranks.count > 1)
      range.slices = {operand.rank_stride() * ranks.step, ranks.along, range.begin, range.end - range.begin};
  }
  return range;
}

std::vector<Stretch> RankMemory::stretchesOf(const Range &range) const {
  const uint64_t bytes = range.end - range.begin;
  if (range.slices.stride == bytes || range.ranks == 1)
    return {{range.begin, range.begin + range.ranks * bytes, 0}};
  std::vector<Stretch> stretches;
  for (uint64_t c = 0; c < range.ranks; ++c)
    stretches.push_back({range.begin + c * range.slices.stride, range.end + c * range.slices.stride, c * bytes});
  return stretches;
}

bool RankMemory::isOfMicrobatch(const Known &known) const {
  if (known.share)
    return std::ranges::any_of(known.share->whole, [&](const Known &one) { return isOfMicrobatch(one); });
  return known.contributions.empty() && context.changes.isOfMicrobatch(known.value);
}

Contents RankMemory::joined(std::vector<OperandSegment> segments, uint64_t bytes, plan::AxisSet along) const {
  for (const OperandSegment &one : segments)
    if (one.share && along.empty())
      along = one.share->along;
  if (along.empty() || segments.empty())
    return {std::move(segments), along};
  if (std::ranges::any_of(segments, [&](const OperandSegment &one) { return one.share && one.share->along != along; }))
    return {{{0, bytes, {.value = Values::other}}}};
  const bool isAll = segments.size() == 1 && segments[0].begin == 0 && segments[0].end == bytes;
  if (const auto &share = segments[0].share; isAll && share && segments[0].valueByte == 0 && share->bytes == bytes)
    return {share->whole, along};
  const uint64_t ranks = coordinates(along).count;
  if (isAll && isNumber(segments[0]))
    return {{{0, bytes * ranks, segments[0]}}, along};
  Contents contents{{}, along};
  for (uint64_t c = 0; c < ranks; ++c)
    for (const OperandSegment &one : segments) {
      std::vector<OperandSegment> own = {{0, one.end - one.begin, one}};
      if (one.share)
        own = cut(one.share->whole, c * one.share->bytes + one.valueByte, one.end - one.begin);
      for (OperandSegment &piece : own) {
        piece.begin += c * bytes + one.begin;
        piece.end += c * bytes + one.begin;
        append(contents.segments, std::move(piece));
      }
    }
  return contents;
}

Contents RankMemory::contentsOf(const proto::Operand &operand, uint64_t microbatch) {
  Contents own = ownContentsOf(operand, microbatch);
  return own.along.empty() ? joined(std::move(own.segments), byteCount(operand)) : own;
}

Contents RankMemory::ownContentsOf(const proto::Operand &operand, uint64_t microbatch) {
  const Range range = rangeOf(operand, microbatch);
  const bool isOwn = range.ranks > 1, carried = isCarried(bufferOf(operand));
  ShadowMemory &shadow = shadows_[range.arena];
  std::vector<OperandSegment> segments;
  for (const Stretch &stretch : stretchesOf(range)) {
    if (isOwn)
      shadow.claim(stretch.begin, stretch.end, range.slices);
    const uint64_t skip = stretch.begin - stretch.first;
    shadow.over(stretch.begin, stretch.end, isOwn, [&](uint64_t begin, uint64_t end, const Segment &segment) {
      const Content &content = segment.content;
      OperandSegment &one = segments.emplace_back(begin - skip, end - skip, content);
      if (isOwn && one.share) // of each rank's share, another part
        static_cast<Known &>(one) = {.value = Values::other};
      // What the micro-batch before has made of it is what this one finds there.
      if (carried && content.generation == microbatch && microbatch > 0)
        one.value = one.value == values().storedIn(bufferOf(operand).variable())
                        ? values().variable(bufferOf(operand).variable())
                        : std::min<uint32_t>(one.value, Values::other);
    });
  }
  if (isOwn)
    return {std::move(segments), range.slices.along};
  shadow.own.touching(range.begin, range.end, [&](uint64_t begin, uint64_t end, const OwnSegment &own) {
    for (OperandSegment &one : segments) // ranks have written their slices
      if (own.changed && range.begin + one.begin < end && begin < range.begin + one.end)
        static_cast<Known &>(one) = {.value = Values::other};
  });
  return {std::move(segments)};
}

uint32_t RankMemory::valueIn(const proto::Operand &operand, const Contents &contents) const {
  const std::vector<OperandSegment> &segments = contents.segments;
  if (std::ranges::all_of(segments, [](const OperandSegment &one) { return one.value == Values::unknown; }))
    return Values::unknown;
  if (const plan::AxisSet along = contents.along; !along.empty() && isEveryRank(along))
    if (const std::optional<Contents> part = partOfEach(*this, along, segments, byteCount(operand)))
      return part->segments[0].value;
  for (const OperandSegment &one : segments)
    if (one.value != segments[0].value || (one.valueByte != one.begin && !isNumber(one)))
      return Values::other;
  const uint32_t value = segments[0].value;
  if (!contents.along.empty() && !isNumber(segments[0]))
    return Values::other;
  // What a step has stored in a variable that outlives it is what the next one finds there.
  const proto::Buffer &buffer = bufferOf(operand);
  const bool isStored = buffer.has_variable() && !isCarried(buffer) && value == values().storedIn(buffer.variable());
  return isStored ? values().variable(buffer.variable()) : value;
}

/// What ranks have together that each have this.
Contents RankMemory::besideEachOther(const std::vector<OperandSegment> &segments, uint64_t bytes,
                                     plan::AxisSet along) const {
  Known all = sideBySide(*this, along, segments);
  if (all.value <= Values::other || !isEveryRank(along))
    return joined(segments, bytes, along);
  for (const OperandSegment &one : segments)
    all.varies = all.varies | one.varies;
  return {{{0, bytes * coordinates(along).count, all}}, along};
}

void RankMemory::put(const Range &range, const Segment &written, const Contents &contents) {
  ShadowMemory &shadow = shadows_[range.arena];
  const uint64_t bytes = range.end - range.begin;
  const auto as = [&](auto segment, const Known &known) {
    static_cast<Known &>(segment.content) = known;
    return segment;
  };
  if (range.ranks > 1) {
    Contents own = contents.along.empty() ? besideEachOther(contents.segments, bytes, range.slices.along) : contents;
    if (own.along != range.slices.along)
      own.segments = {{0, bytes * range.ranks, {.value = Values::other}}};
    for (const Stretch &stretch : stretchesOf(range))
      for (const OperandSegment &one : cut(own.segments, stretch.first, stretch.end - stretch.begin))
        shadow.own.assign(stretch.begin + one.begin, stretch.begin + one.end,
                          as(OwnSegment{written, range.slices, /*changed=*/true}, one));
    return;
  }
  shadow.own.erase(range.begin, range.end);
  if (!contents.along.empty())
    return shadow.common.assign(
        range.begin, range.end,
        as(written,
           {.value = Values::other, .share = std::make_shared<Share>(contents.along, bytes, contents.segments)}));
  for (const OperandSegment &one : contents.segments)
    shadow.common.assign(range.begin + one.begin, range.begin + one.end, as(written, one));
}

void RankMemory::refuse(const char *rule, size_t index, const std::string &sentence, const std::string &note,
                        std::optional<size_t> other) const {
  const bool several = plan().roles_size() > 1 || role().ranks_size() != 2 || role().ranks(0) != role().ranks(1);
  const std::string place = placeOf(index) + (several ? ", rank " + std::to_string(rank) : "");
  std::vector<plan::CommandPlace> places;
  for (const size_t one : other ? std::vector{index, *other} : std::vector{index})
    places.push_back({context.index, context.program.name(), instance(one).call, instance(one).index});
  throw Refusal{rule, place + ": " + sentence, note, place, places};
}

} // namespace ds::check
