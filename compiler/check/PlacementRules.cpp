//===- PlacementRules.cpp - what ranks have of variables fits together ----===//
#include "compiler/check/PlacementRules.h"

#include "compiler/check/StateChanges.h"
#include "compiler/check/schedule/Effects.h"
#include "compiler/check/schedule/Refusal.h"
#include "runtime/plan/world/Mesh.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace ds::check {

namespace {

/// Whether a role has all ranks or none of those that differ along an axis alone.
bool hasWholeGroups(const proto::Plan &plan, const proto::Role &role, uint32_t axis) {
  const uint64_t stride = plan::axisStride(plan.world(), axis), all = stride * plan.world().axes(int(axis)).size();
  for (int i = 0; i + 1 < role.ranks_size(); i += 2)
    if (const uint64_t first = role.ranks(i), last = role.ranks(i + 1); first % all != 0 || (last + 1) % all != 0)
      return false;
  return true;
}

/// What micro-batches change varies as they do, and nothing else does.
void checkPlacement(const proto::Plan &plan, const proto::Variable &variable, bool isOwn) {
  const proto::Placement &placement = variable.placement();
  const std::string name = "variable " + variable.name();
  if (plan::varyingAxes(plan.world(), placement) != (isOwn ? plan::batchAxes(plan) : plan::AxisSet()))
    throw Refusal{"meaning",
                  name + (isOwn ? ": each rank changes it by its own micro-batches, but its placement does not say "
                                  "that it varies as inputs do"
                                : ": its placement says that ranks have other values of it, which the reference "
                                  "program does not make")};
  for (const proto::AxisPlacement &along : placement.axes()) {
    const std::string &axis = plan.world().axes(int(along.axis())).name();
    if (along.has_shard() && plan::batchAxes(plan).contains(along.axis()))
      throw Refusal{"meaning", name + ": ranks have parts of it along axis " + axis +
                                   ", along which they have samples of their own, so what they make of these parts is "
                                   "no part of one value"};
    for (const proto::Role &role : plan.roles())
      if (along.has_shard() && !hasWholeGroups(plan, role, along.axis()))
        throw Refusal{"coverage", name + ": ranks have parts of it along axis " + axis + ", of which role " +
                                      role.name() + " has some and other roles the rest"};
  }
}

/// Gradients and state lie as the parameter does that is updated by them.
void checkPlacementsOf(const proto::Plan &plan, const proto::ReferenceOp &update) {
  const proto::Variable *parameter = nullptr;
  for (const uint32_t variable : update.variables())
    if (plan.variables(int(variable)).kind() == proto::Variable::PARAMETER)
      parameter = &plan.variables(int(variable));
  for (const uint32_t index : update.variables())
    if (const proto::Variable &variable = plan.variables(int(index));
        parameter && std::ranges::equal(variable.shape(), parameter->shape()) &&
        variable.placement().SerializeAsString() != parameter->placement().SerializeAsString())
      throw Refusal{"meaning", "variable " + variable.name() + ": its placement is not that of " + parameter->name() +
                                   ", which is updated by it"};
}

/// What of a variable and of all that belongs to its parameter ranks share out, they share out alike: an update finds
/// the same elements of each, on every rank.
void checkWindows(const proto::Plan &plan) {
  std::map<uint32_t, std::pair<uint32_t, plan::AxisSet>> known; // by parameter: a bucket of its own, and its axes
  for (int b = 0; b < plan.buckets_size(); ++b) {
    const proto::Bucket &bucket = plan.buckets(b);
    if (!bucket.placement().has_window())
      continue;
    const plan::AxisSet axes = plan::axesOf(plan, bucket.placement().window().communicator());
    for (const proto::BucketMember &member : bucket.members()) {
      const proto::Variable &variable = plan.variables(int(member.variable()));
      const uint32_t parameter = variable.has_of() ? variable.of() : member.variable();
      if (const auto &[first, own] = known.try_emplace(parameter, uint32_t(b), axes).first->second; own != axes)
        throw Refusal{"coverage", "bucket " + bucket.name() + ": ranks share out " + variable.name() +
                                      " along other axes than bucket " + plan.buckets(int(first)).name() +
                                      " has of the same parameter"};
    }
  }
}

} // namespace

void checkPlacements(const proto::Plan &plan) {
  checkWindows(plan);
  if (plan.reference().ops_size() == 0)
    return;
  const std::set<uint32_t> own = changedByMicrobatches(plan);
  for (int v = 0; v < plan.variables_size(); ++v)
    checkPlacement(plan, plan.variables(v), own.contains(uint32_t(v)));
  for (const proto::ReferenceOp &op : plan.reference().ops())
    if (isOptimizer(op))
      checkPlacementsOf(plan, op);
}

} // namespace ds::check
