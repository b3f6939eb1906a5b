//===- PartPlace.cpp - kernels that say where a rank's part begins ---------===//
#include "compiler/check/meaning/PartPlace.h"

#include "compiler/check/meaning/ReferenceOps.h"

#include <algorithm>
#include <string_view>

namespace ds::check {

namespace {

bool isAlong(const proto::Plan &plan, const proto::RankSteps &steps, uint32_t axis) {
  const proto::Communicator &along = plan.communicators(int(steps.communicator()));
  return along.axes_size() == 1 && along.axes(0) == axis;
}

proto::Integers *integers(proto::KernelCommand &kernel, std::string_view name) {
  for (proto::Attribute &attribute : *kernel.mutable_attributes())
    if (attribute.name() == name && attribute.has_integers())
      return attribute.mutable_integers();
  return nullptr;
}

} // namespace

const proto::RankSteps *stepsAlong(const proto::Plan &plan, const proto::KernelCommand &kernel, uint32_t axis) {
  if (const proto::Attribute *first = attributeOf(kernel, "first"))
    for (const proto::RankSteps &steps : first->integers().rank_steps())
      if (isAlong(plan, steps, axis) && std::ranges::count(steps.values(), 0) != steps.values_size())
        return &steps;
  return nullptr;
}

bool takeOutPlace(const proto::Plan &plan, proto::KernelCommand &kernel, uint32_t axis, int entry, const Cut &cut) {
  proto::Integers *all = integers(kernel, "whole"), *first = integers(kernel, "first");
  if (!all || !first || entry >= all->values_size() || entry >= first->values_size() || cut.outer != 1 ||
      cut.blocks.size() != 1 || cut.repeat != 1)
    return false;
  const auto steps = std::ranges::find_if(*first->mutable_rank_steps(), [&](const proto::RankSteps &one) {
    return isAlong(plan, one, axis) && entry < one.values_size();
  });
  if (steps == first->mutable_rank_steps()->end() || all->values(entry) != int64_t(cut.length * cut.inner) ||
      steps->values(entry) != int64_t(cut.blocks[0].stride * cut.inner) ||
      first->values(entry) != int64_t(cut.blocks[0].offset * cut.inner))
    return false;
  steps->set_values(entry, 0);
  first->set_values(entry, 0);
  return true;
}

void clearPlace(proto::KernelCommand &kernel, std::span<const int64_t> sizes) {
  const proto::Integers *all = integers(kernel, "whole"), *first = integers(kernel, "first");
  const auto isZero = [](const auto &values) { return std::ranges::count(values, 0) == values.size(); };
  if (!all || !first || !std::ranges::equal(all->values(), sizes) || !isZero(first->values()) ||
      !std::ranges::all_of(first->rank_steps(), [&](const auto &steps) { return isZero(steps.values()); }))
    return;
  auto &attributes = *kernel.mutable_attributes();
  const auto isPlace = [](const proto::Attribute &one) { return one.name() == "whole" || one.name() == "first"; };
  attributes.erase(std::remove_if(attributes.begin(), attributes.end(), isPlace), attributes.end());
}

} // namespace ds::check
