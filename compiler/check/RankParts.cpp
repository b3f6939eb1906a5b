//===- RankParts.cpp - ranks along an axis have parts of values ------------===//
#include "compiler/check/RankParts.h"

#include "compiler/check/schedule/Effects.h"

#include <algorithm>

namespace ds::check {

namespace {

/// `axes`, the last first; none where micro-batches are dealt out along one of them.
std::vector<uint32_t> lastFirst(const proto::Plan &plan, plan::AxisSet axes) {
  std::vector<uint32_t> order;
  for (auto axis = uint32_t(plan.world().axes_size()); axis-- > 0;)
    if (axes.contains(axis))
      order.push_back(axis);
  const bool isBatch = axes - plan::batchAxes(plan) != axes;
  return isBatch ? std::vector<uint32_t>() : order;
}

/// Whether segments are all of one value, and of the same contributions.
bool isAll(const Values &values, const std::vector<OperandSegment> &segments) {
  const uint32_t value = segments.front().value;
  const ValueType &type = values.type(value);
  if (value <= Values::other || !type.elements ||
      segments.back().valueByte + segments.back().end - segments.back().begin !=
          *type.elements * elementBytes(type.dtype))
    return false;
  return std::ranges::all_of(segments, [&](const OperandSegment &one) {
    return one.value == value && one.valueByte == one.begin && one.contributions == segments.front().contributions;
  });
}

/// The same where `of` makes another value of its own, and of what each micro-batch has added.
Known mapped(const OperandSegment &segment, auto &&of) {
  Known known{segment.contributions, of(segment.value)};
  for (Contribution &one : known.contributions)
    one.value = of(one.value);
  std::ranges::sort(known.contributions);
  return known;
}

} // namespace

Known sideBySide(const RankMemory &memory, plan::AxisSet axes, const std::vector<OperandSegment> &own) {
  const std::vector<uint32_t> order = lastFirst(memory.plan(), axes);
  Values &values = memory.values();
  if (own.empty() || order.empty() || !isAll(values, own))
    return {.value = Values::other};
  return mapped(own.front(), [&](uint32_t value) {
    for (const uint32_t axis : order)
      value = values.sideBySide(value, axis, memory.plan().world().axes(int(axis)).size()).value_or(Values::other);
    return value;
  });
}

std::optional<Contents> partOfEach(const RankMemory &memory, plan::AxisSet axes,
                                   const std::vector<OperandSegment> &whole, uint64_t bytes) {
  const std::vector<uint32_t> order = lastFirst(memory.plan(), axes);
  if (order.empty())
    return std::nullopt;
  Values &values = memory.values();
  if (whole.front().value == values.zero())
    return Contents{{{0, bytes, {.value = values.zero()}}}};
  if (!isAll(values, whole))
    return Contents{{{0, bytes, {.value = Values::other}}}};
  return Contents{{{0, bytes, mapped(whole.front(), [&](uint32_t value) {
                      for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
                        const uint64_t parts = memory.plan().world().axes(int(*axis)).size(),
                                       elements = values.type(value).elements.value_or(0);
                        value = values.placed(value, {*axis, {}, Cut::inParts(1, parts, elements / parts)});
                      }
                      return value;
                    })}}};
}

} // namespace ds::check
