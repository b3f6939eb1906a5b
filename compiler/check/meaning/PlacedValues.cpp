//===- PlacedValues.cpp - what ranks along an axis have of values -----------===//
#include "compiler/check/meaning/Values.h"

#include "compiler/check/meaning/ReferenceOps.h"
#include "runtime/plan/world/Placement.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>

namespace ds::check {

uint32_t Values::placed(uint32_t value, const Spread &spread) {
  const std::optional<uint64_t> elements = types_[value].elements;
  if (value <= other || value == zero() || (!elements && !spread.isPartial()))
    return value;
  if (const Placed *outer = placedIn(value); outer && outer->spread.axis >= spread.axis)
    return other; // kernels look at the last axis first, and no plan needs another order
  if (const auto exchanged = exchanged_.find(value); exchanged != exchanged_.end() && !spread.isPartial()) {
    const Exchanged &from = exchanged->second;
    if (spread.cut == Cut::inParts(1, from.second, from.first * from.inner))
      return placed(from.value, {spread.axis, {}, Cut::inParts(from.first, from.second, from.inner)});
  }
  ValueType type = types_[value];
  if (!spread.isPartial())
    type.elements = *elements / spread.cut.length * spread.cut.kept();
  const std::string along = " along axis " + plan_.world().axes(int(spread.axis)).name();
  const uint32_t result =
      number("placed " + std::to_string(value) + " " + spread.key(),
             (spread.isPartial() ? proto::AxisPlacement::Reduction_Name(spread.partial) + "-terms of " : "parts of ") +
                 names_[value] + along,
             type);
  placed_.try_emplace(result, Placed{value, spread});
  return result;
}

uint32_t Values::placedAs(uint32_t index, uint32_t value) {
  const proto::Variable &variable = plan_.variables(int(index));
  std::vector<int64_t> shape(variable.shape().begin(), variable.shape().end()); // of a rank's part so far
  for (const proto::AxisPlacement &along : variable.placement().axes())
    if (along.has_shard()) {
      value = placed(value, {along.axis(), {}, Cut::of(shape, along.shard())});
      plan::cut(shape, along.shard());
    } else if (along.has_partial()) {
      value = placed(value, {along.axis(), along.partial(), {}});
    }
  return value;
}

std::optional<uint32_t> Values::addedUp(uint32_t value, plan::AxisSet axes) {
  if (axes.empty())
    return value;
  const Placed *found = placedIn(value);
  if (!found)
    return std::nullopt;
  const Placed outer = *found;
  if (!axes.contains(outer.spread.axis)) {
    const std::optional<uint32_t> inner = addedUp(outer.whole, axes);
    return inner ? std::optional(placed(*inner, outer.spread)) : std::nullopt;
  }
  plan::AxisSet own;
  own.add(outer.spread.axis);
  return outer.spread.partial == proto::AxisPlacement::SUM ? addedUp(outer.whole, axes - own) : std::nullopt;
}

uint32_t Values::squares(uint32_t value, int64_t block, uint64_t elements) {
  if (value <= other || block <= 0)
    return std::min<uint32_t>(value, other);
  const uint64_t wholeBlocks = (elements + uint64_t(wholeBlock) - 1) / uint64_t(wholeBlock);
  const uint32_t result = number(
      "squares " + std::to_string(value) + " " + std::to_string(block) + " of " + std::to_string(elements),
      "the squares of " + names_[value],
      {proto::DTYPE_F64, wholeBlocks * uint64_t(std::max<int64_t>(1, wholeBlock / block)), types_[value].follows});
  squares_.try_emplace(result, Squared{value, uint64_t(block), elements});
  return result;
}

uint32_t Values::exchanged(uint32_t value, uint64_t first, uint64_t second, uint64_t inner) {
  const std::optional<uint64_t> elements = types_[value].elements;
  if (value <= other || !elements || first == 1 || second == 1)
    return value;
  if (*elements != first * second * inner)
    return other;
  if (const auto back = exchanged_.find(value); back != exchanged_.end() && back->second.is(second, first, inner))
    return back->second.value;
  std::string key = "exchanged " + std::to_string(value);
  for (const uint64_t size : {first, second, inner})
    key += " " + std::to_string(size);
  const uint32_t result = number(key, std::to_string(second) + " parts of " + names_[value] + ", one behind another",
                                 ValueType(types_[value]));
  exchanged_.try_emplace(result, Exchanged{value, first, second, inner});
  return result;
}

std::optional<uint32_t> Values::sideBySide(uint32_t value, uint32_t axis, uint64_t ranks) {
  const std::optional<uint32_t> squared = squaresOf(value);
  const Placed *found = placedIn(squared.value_or(value));
  if (!found || found->spread.axis != axis || found->spread.isPartial())
    return std::nullopt;
  const Placed part = *found;
  const Cut &cut = part.spread.cut;
  if (cut.repeat != 1 || cut.length != cut.kept() * ranks)
    return std::nullopt;
  if (squared) {
    const uint32_t all = number("all " + std::to_string(value), "the squares of all " + names_[*squared],
                                {types_[value].dtype, *types_[value].elements * ranks, types_[value].follows});
    squaresOfAll_.try_emplace(all, part.whole);
    return all;
  }
  if (cut != Cut::inParts(cut.outer, ranks, cut.inner)) // several blocks
    return std::nullopt;
  return exchanged(part.whole, cut.outer, ranks, cut.inner);
}

} // namespace ds::check
